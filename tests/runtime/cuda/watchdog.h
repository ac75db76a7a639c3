// Watchdog: ends the process with a sentence when a test takes too long, so that a hang on the GPU
// (which host code cannot interrupt) is seen as a failure with a name.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace tileweave {

class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds limit, std::string what)
      : what_(std::move(what)), thread_([this, limit] { watch(limit); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, limit, [this] { return done_; })) return;
    std::fprintf(stderr, "watchdog: %s took longer than %lld s; ending the process\n",
                 what_.c_str(), static_cast<long long>(limit.count()));
    std::fflush(nullptr);
    _exit(3);
  }

  std::string what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;  // last: it uses the members above
};

/// Every GPU test runs under one.
class GpuTest : public testing::Test {
 protected:
  static constexpr std::chrono::seconds kLimit{60};

 private:
  Watchdog watchdog_{kLimit, testing::UnitTest::GetInstance()->current_test_info()->name()};
};

}  // namespace tileweave
