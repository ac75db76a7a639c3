#include "tileweave/runtime/cpu/fiber.h"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace tileweave::cpu {
namespace {

struct Counter {
  Fiber* fiber = nullptr;
  std::vector<int>* log = nullptr;
  std::mutex* guard = nullptr;  // fibers are as unordered as threads
  int id = 0;
  int steps = 0;
};

void count(void* argument) {
  auto& counter = *static_cast<Counter*>(argument);
  for (int i = 0; i < counter.steps; ++i) {
    {
      const std::lock_guard lock(*counter.guard);
      counter.log->push_back(10 * counter.id + i);
    }
    counter.fiber->suspend();
  }
}

TEST(Fiber, TakesTurnsWithOthersAndKeepsItsStack) {
  FiberPool pool;
  std::vector<int> log;
  std::mutex guard;
  std::unique_ptr<Fiber> first = pool.take();
  std::unique_ptr<Fiber> second = pool.take();
  Counter one{first.get(), &log, &guard, 1, 3};
  Counter two{second.get(), &log, &guard, 2, 2};
  first->start(&count, &one);
  second->start(&count, &two);
  while (!first->finished() || !second->finished()) {
    if (!first->finished()) first->resume();
    if (!second->finished()) second->resume();
  }
  EXPECT_EQ(log, (std::vector<int>{10, 20, 11, 21, 12}));
  pool.give(std::move(first));
  pool.give(std::move(second));
}

TEST(Fiber, FinishedOnesStartAgainWithAnotherFunction) {
  FiberPool pool;
  std::vector<int> log;
  std::mutex guard;
  for (int round = 0; round < 3; ++round) {
    std::unique_ptr<Fiber> fiber = pool.take();
    Counter counter{fiber.get(), &log, &guard, round, 1};
    fiber->start(&count, &counter);
    while (!fiber->finished()) fiber->resume();
    pool.give(std::move(fiber));
  }
  EXPECT_EQ(log, (std::vector<int>{0, 10, 20}));
}

void throw_and_catch(void* argument) {
  auto& what = *static_cast<std::string*>(argument);
  try {
    throw std::runtime_error("inside");
  } catch (const std::exception& thrown) {
    what = thrown.what();
  }
}

TEST(Fiber, ExceptionsUnwindItsOwnStack) {
  FiberPool pool;
  std::string what;
  std::unique_ptr<Fiber> fiber = pool.take();
  fiber->start(&throw_and_catch, &what);
  fiber->resume();
  EXPECT_TRUE(fiber->finished());
  EXPECT_EQ(what, "inside");
  pool.give(std::move(fiber));
}

TEST(Fiber, StackHasAGuardPageBelowIt) {
  const FiberStack stack(64 * 1024);
  EXPECT_GE(stack.size(), 64U * 1024U);
  EXPECT_DEATH(*(stack.bottom() - 1) = std::byte{1}, "");
}

}  // namespace
}  // namespace tileweave::cpu
