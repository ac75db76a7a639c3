// Fiber: a call stack that one thread can leave and enter again, over ucontext.
//
// A fiber belongs to the thread that made it: `resume` runs it until it suspends or its function
// returns. Stacks have a guard page below them. Fibers come from a pool of the same thread, which
// starts finished ones again with another function. An exception must not leave the function. A
// fiber must have finished (or never begun) when it is given back or destroyed. Under
// ThreadSanitizer every fiber has a fresh stack and a fresh context (sanitizer.h).
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tileweave/runtime/cpu/sanitizer.h"

namespace tileweave::cpu {

/// Memory of one stack, with an inaccessible page below it. Throws Error when there is none left.
class FiberStack {
 public:
  explicit FiberStack(std::size_t bytes);
  ~FiberStack();
  FiberStack(const FiberStack&) = delete;
  FiberStack& operator=(const FiberStack&) = delete;

  /// Fresh pages in place of those that were touched, for ThreadSanitizer a new stack.
  void renew();

  std::byte* bottom() const { return bottom_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* mapping_ = nullptr;
  std::size_t mapping_size_ = 0;
  std::byte* bottom_ = nullptr;
  std::size_t size_ = 0;
};

class Fiber {
 public:
  using Entry = void (*)(void* argument);

  /// Throws Error when there is no memory for the stack.
  explicit Fiber(std::size_t stack_bytes);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The next resume() calls entry(argument). Call it in the nursery, after everything there that
  /// the entry will look at.
  void start(Entry entry, void* argument);
  /// From the owning thread, outside the fiber: runs it until it suspends or finishes.
  void resume();
  /// From inside the fiber: back to the caller of resume().
  void suspend();
  bool finished() const;

 private:
  friend class FiberPool;
  void make_context();
  static void trampoline(unsigned high, unsigned low);
  void main();
  void leave(void** fake_stack);

  FiberStack stack_;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  ucontext_t own_{};
  ucontext_t resumer_{};
  bool finished_ = false;
  void* tsan_own_ = nullptr;
  void* tsan_resumer_ = nullptr;
  const void* asan_resumer_bottom_ = nullptr;
  std::size_t asan_resumer_size_ = 0;
  Fiber* next_free_ = nullptr;
};

/// Fibers of one thread, and the nursery in which they are born.
class FiberPool {
 public:
  explicit FiberPool(std::size_t stack_bytes = kDefaultStackBytes);
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  static constexpr std::size_t kDefaultStackBytes = 256 * 1024;

  std::unique_ptr<Fiber> take();
  void give(std::unique_ptr<Fiber> fiber);

  /// Runs make(argument) as the nursery: whatever fibers it starts know of nothing but what the
  /// nursery has made. Under ThreadSanitizer that is a context and a stack of its own. An exception
  /// must not leave `make`.
  void run_in_nursery(Fiber::Entry make, void* argument);

 private:
  Fiber* take_free();
  void keep_free(Fiber* fiber);

  std::size_t stack_bytes_;
  Fiber* first_free_ = nullptr;  // taken in the nursery, given outside
  struct Nursery;
  std::unique_ptr<Nursery> nursery_;  // null where nobody looks
};

}  // namespace tileweave::cpu
