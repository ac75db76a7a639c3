// LaunchOrderRecord: what `tileweave doctor` found out about the launch order of one GPU under one
// driver, kept in a small JSON file so that later runs may trust it (ground `ordered`).
//
// `doctor` stores, a program asks before it fills RunOptions::launch_order. One file holds the
// records of several GPUs and drivers; storing replaces those of the same pair, keeps the others
// and swaps the file atomically (of two writers at once the last wins). Asking never throws: a file
// that is missing, unreadable, damaged, of another format or silent about this GPU and this driver
// means kNotTrusted. Storing throws Error naming the file.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/plan/verify.h"

namespace tileweave {

/// Launch-completion edges watched in chains of one kind.
struct LaunchOrderCount {
  std::int64_t launches = 0;
  std::int64_t inversions = 0;  // launches with a block that began before its predecessor's last
};

struct LaunchOrderRecord {
  std::string gpu;              // as the driver names it
  std::string driver;           // version of the driver
  LaunchOrderCount equal = {};  // chains of kernels of equal resources
  LaunchOrderCount unequal = {};
};

/// Launches of each kind without one inversion that make a launch order trusted.
inline constexpr std::int64_t kLaunchesToTrust = 1000;

/// What the counts say, wherever they came from.
LaunchOrder launch_order_of(const LaunchOrderRecord& record);

/// The file below cache_folder(folder); empty where that is.
std::string launch_order_path(const std::string& folder = {});

/// Makes the folders on the way where they are missing.
void store_launch_order(const LaunchOrderRecord& record, const std::string& path);

LaunchOrder stored_launch_order(const std::string& gpu, const std::string& driver,
                                const std::string& path) noexcept;

}  // namespace tileweave
