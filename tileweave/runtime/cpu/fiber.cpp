#include "tileweave/runtime/cpu/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"

namespace tileweave::cpu {

FiberStack::FiberStack(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  size_ = (bytes + page - 1) / page * page;
  mapping_size_ = size_ + page;
  void* mapping = mmap(nullptr, mapping_size_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED) {
    throw Error("make a block's stack", human_bytes(mapping_size_) + " of address space", "none");
  }
  mapping_ = static_cast<std::byte*>(mapping);
  if (mprotect(mapping_, page, PROT_NONE) != 0) {
    munmap(mapping_, mapping_size_);
    throw Error("make a block's stack", "a guard page below it", "mprotect failed");
  }
  bottom_ = mapping_ + page;
}

FiberStack::~FiberStack() {
  munmap(mapping_, mapping_size_);
}

FiberPool::FiberPool(std::size_t stack_bytes)
    : stack_bytes_(stack_bytes), nursery_(tsan_create()) {}

FiberPool::~FiberPool() {
  tsan_destroy(nursery_);
}

std::unique_ptr<Fiber> FiberPool::take(Fiber::Entry entry, void* argument) {
  std::unique_ptr<Fiber> fiber;
  if (free_.empty()) {
    fiber = std::make_unique<Fiber>(stack_bytes_);
  } else {
    fiber = std::move(free_.back());
    free_.pop_back();
  }
  fiber->start(entry, argument);
  return fiber;
}

void FiberPool::give(std::unique_ptr<Fiber> fiber) {
  // A second block on the same stack and in the same context would look ordered after the first.
  if constexpr (!kTsan) free_.push_back(std::move(fiber));
}

TW_UNSEEN_BY_TSAN void FiberPool::enter_nursery() {
  visitor_ = tsan_current();
  tsan_switch(nursery_, SwitchOrder::kUnordered);
}

TW_UNSEEN_BY_TSAN void FiberPool::leave_nursery() {
  tsan_switch(visitor_, SwitchOrder::kOrdered);
}

Fiber::Fiber(std::size_t stack_bytes) : stack_(stack_bytes), tsan_own_(tsan_create()) {
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.bottom();
  own_.uc_stack.ss_size = stack_.size();
  own_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  // makecontext passes ints: a pointer travels in two halves.
  makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::trampoline), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self & 0xffffffffU));
}

Fiber::~Fiber() {
  tsan_destroy(tsan_own_);
}

void Fiber::start(Entry entry, void* argument) {
  entry_ = entry;
  argument_ = argument;
  finished_ = false;
}

TW_UNSEEN_BY_TSAN void Fiber::resume() {
  void* fake_stack = nullptr;
  if constexpr (kAsan) {
    __sanitizer_start_switch_fiber(&fake_stack, stack_.bottom(), stack_.size());
  }
  tsan_resumer_ = tsan_current();
  tsan_switch(tsan_own_, SwitchOrder::kUnordered);
  swapcontext(&resumer_, &own_);
  if constexpr (kAsan) __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
}

TW_UNSEEN_BY_TSAN void Fiber::suspend() {
  void* fake_stack = nullptr;
  leave(&fake_stack);
  if constexpr (kAsan) {
    __sanitizer_finish_switch_fiber(fake_stack, &asan_resumer_bottom_, &asan_resumer_size_);
  }
}

/// `fake_stack` null: the frames that are left behind are done with.
TW_UNSEEN_BY_TSAN void Fiber::leave(void** fake_stack) {
  if constexpr (kAsan) {
    __sanitizer_start_switch_fiber(fake_stack, asan_resumer_bottom_, asan_resumer_size_);
  }
  tsan_switch(tsan_resumer_, SwitchOrder::kOrdered);
  swapcontext(&own_, &resumer_);
}

TW_UNSEEN_BY_TSAN bool Fiber::finished() const {
  return finished_;
}

TW_UNSEEN_BY_TSAN void Fiber::trampoline(unsigned high, unsigned low) {
  const std::uintptr_t self = (static_cast<std::uintptr_t>(high) << 32) | low;
  reinterpret_cast<Fiber*>(self)->main();
}

TW_UNSEEN_BY_TSAN void Fiber::main() {
  for (;;) {
    if constexpr (kAsan) {
      __sanitizer_finish_switch_fiber(nullptr, &asan_resumer_bottom_, &asan_resumer_size_);
    }
    entry_(argument_);
    finished_ = true;
    leave(nullptr);
  }
}

}  // namespace tileweave::cpu
