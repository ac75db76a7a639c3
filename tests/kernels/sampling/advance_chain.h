// A decode loop without the host: argmax, then the advance, run after run; compared with
// advance_reference.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tileweave/kernels/sampling/add_sampling.h"
#include "tileweave/kernels/sampling/advance.h"
#include "tileweave/kernels/sampling/advance_ref.h"
#include "tileweave/kernels/sampling/argmax.h"
#include "tileweave/kernels/sampling/sample_ref.h"
#include "tileweave/runtime/program.h"

namespace tileweave {

/// Device memory that holds a vector's values.
template <class T>
class DeviceArray {
 public:
  DeviceArray(Device& device, const std::vector<T>& values)
      : device_(device),
        count_(values.size()),
        data_(static_cast<T*>(device.allocate(count_ * sizeof(T)))) {
    device.upload(data_, values.data(), count_ * sizeof(T));
  }
  ~DeviceArray() { device_.release(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() { return data_; }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    device_.download(values.data(), data_, count_ * sizeof(T));
    return values;
  }

 private:
  Device& device_;
  std::size_t count_;
  T* data_;
};

/// Memory that host and device share, for the ring and its count.
template <class T>
class SharedArray {
 public:
  SharedArray(Device& device, std::size_t count)
      : device_(device),
        values_(static_cast<T*>(device.allocate_shared(count * sizeof(T))), count) {
    std::fill(values_.begin(), values_.end(), T{0});
  }
  ~SharedArray() { device_.release_shared(values_.data()); }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;

  std::span<T> values() { return values_; }

 private:
  Device& device_;
  std::span<T> values_;
};

/// One row that runs out of pages, one whose last page is missing, one at a page's end, one at its
/// begin, one of padding.
/// `make(args)`: make_advance of the device.
template <class Make>
void expect_advances(Device& device, const Make& make, const RunOptions& options) {
  constexpr std::int64_t kRows = 5, kCols = 37;
  constexpr std::int32_t kPageSize = 4, kMaxPages = 3, kRing = 4, kSteps = 6, kHistory = 3;
  const std::vector<std::int32_t> pages = {7, 2, 5, 0, 9, 4, 1, 8, 3, 6, 10, -1, 0, 0, 0};
  DecodeState expected{.ids = {1, 2, 3, 4, 0},
                       .positions = {3, 0, 9, 6, 0},
                       .past = {3, 0, 9, 6, 0},
                       .slots = {31, 0, 13, 42, -1},
                       .draw_positions = {4, 1, 10, 7, 1},
                       .history = {{}, {5}, {5, 6, 7}, {5, 6}, {}},
                       .tokens = {}};
  std::vector<std::int32_t> history(kRows * kHistory, -1), history_length;
  for (std::size_t r = 0; r < expected.history.size(); ++r) {
    std::copy(expected.history[r].begin(), expected.history[r].end(),
              history.begin() + static_cast<std::ptrdiff_t>(r) * kHistory);
    history_length.push_back(static_cast<std::int32_t>(expected.history[r].size()));
  }

  Plan plan;
  const TensorId logits =
      plan.tensor({.name = "logits", .shape = {kRows, kCols}, .kind = TensorKind::kConstant});
  const TensorId next =
      plan.tensor({.name = "next", .shape = {kRows}, .dtype = DType::kI32, .output = true});
  plan.add(argmax(plan.tensors(), {.tile_m = 1, .tile_n = 16}, logits, next));
  Program program(device, plan, options);
  const auto values = random_values<float>(kRows * kCols, 5);
  program.write(logits, values);

  DeviceArray ids(device, expected.ids), positions(device, expected.positions),
      past(device, expected.past), slots(device, expected.slots),
      draws(device, expected.draw_positions), table(device, pages), seen(device, history),
      num_seen(device, history_length);
  DeviceArray step(device, std::vector<std::uint32_t>{0});
  SharedArray<std::int32_t> tokens(device, kRing * kRows);
  SharedArray<std::uint32_t> published(device, 1);
  program.set_between_runs(
      make(AdvanceArgs{.rows = kRows,
                       .next = static_cast<const std::int32_t*>(program.address(next)),
                       .ids = ids.data(),
                       .positions = positions.data(),
                       .past = past.data(),
                       .slots = slots.data(),
                       .page_table = table.data(),
                       .max_pages = kMaxPages,
                       .page_size = kPageSize,
                       .draw_positions = draws.data(),
                       .history = seen.data(),
                       .history_length = num_seen.data(),
                       .max_history = kHistory,
                       .tokens = tokens.values().data(),
                       .step = step.data(),
                       .published = published.values().data(),
                       .ring_length = kRing}));

  std::vector<std::int32_t> drawn;
  for (std::int64_t r = 0; r < kRows; ++r) {
    drawn.push_back(argmax_reference(std::span(values).subspan(static_cast<std::size_t>(r * kCols),
                                                               static_cast<std::size_t>(kCols))));
  }
  for (int i = 0; i < kSteps; ++i) program.run();
  for (int i = 0; i < kSteps; ++i) {
    advance_reference(expected, {pages, kMaxPages, kPageSize, kHistory}, drawn);
  }
  program.synchronize();

  EXPECT_EQ(published.values()[0], std::uint32_t{kSteps});
  EXPECT_EQ(step.values()[0], std::uint32_t{kSteps});
  EXPECT_EQ(ids.values(), expected.ids);
  EXPECT_EQ(positions.values(), expected.positions);
  EXPECT_EQ(past.values(), expected.past);
  EXPECT_EQ(slots.values(), expected.slots);
  EXPECT_EQ(draws.values(), expected.draw_positions);
  for (std::int32_t s = kSteps - kRing; s < kSteps; ++s) {
    const auto of_step =
        tokens.values().subspan(static_cast<std::size_t>(s % kRing * kRows), kRows);
    EXPECT_EQ(std::vector(of_step.begin(), of_step.end()),
              expected.tokens[static_cast<std::size_t>(s)])
        << "step " << s;
  }
  const std::vector<std::int32_t> lengths = num_seen.values(), kept = seen.values();
  for (std::size_t r = 0; r < expected.history.size(); ++r) {
    ASSERT_EQ(lengths[r], std::ssize(expected.history[r])) << "row " << r;
    const auto begin = kept.begin() + static_cast<std::ptrdiff_t>(r) * kHistory;
    EXPECT_EQ(std::vector(begin, begin + lengths[r]), expected.history[r]) << "row " << r;
  }
}

template <class Make>
void expect_advances_in_every_mode(Device& device, const Make& make) {
  for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
    for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
      SCOPED_TRACE(std::string(mode == Mode::kSerial ? "serial" : "overlap") +
                   (submit == Submit::kEager ? ", eager" : ", graph"));
      expect_advances(device, make, {.mode = mode, .submit = submit});
    }
  }
}

}  // namespace tileweave
