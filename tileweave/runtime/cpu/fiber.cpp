#include "tileweave/runtime/cpu/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

void FiberStack::renew() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::array<unsigned char, 64> resident;
  std::size_t untouched = 0;  // bytes from the bottom
  while (untouched < size_) {
    const std::size_t pages = std::min(resident.size(), (size_ - untouched) / page);
    mincore(bottom_ + untouched, pages * page, resident.data());
    const auto touched = std::find_if(resident.begin(), resident.begin() + pages,
                                      [](unsigned char flags) { return (flags & 1U) != 0; });
    untouched += static_cast<std::size_t>(touched - resident.begin()) * page;
    if (touched != resident.begin() + pages) break;
  }
  if (untouched == size_) return;
  const void* renewed =
      mmap(bottom_ + untouched, size_ - untouched, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_FIXED, -1, 0);
  require(renewed != MAP_FAILED, "renew a block's stack", "memory for it");
}

struct FiberPool::Nursery {
  explicit Nursery(std::size_t stack_bytes) : fiber(stack_bytes) { fiber.start(&serve, this); }
  ~Nursery() {
    closing = true;
    fiber.resume();
  }
  TW_UNSEEN_BY_TSAN static void serve(void* self) {
    auto& nursery = *static_cast<Nursery*>(self);
    while (!nursery.closing) {
      if (nursery.make != nullptr) nursery.make(nursery.argument);
      nursery.fiber.suspend();
    }
  }

  Fiber fiber;
  Fiber::Entry make = nullptr;
  void* argument = nullptr;
  bool closing = false;
};

FiberPool::FiberPool(std::size_t stack_bytes) : stack_bytes_(stack_bytes) {
  if constexpr (kTsan) nursery_ = std::make_unique<Nursery>(stack_bytes);
}

FiberPool::~FiberPool() {
  while (first_free_ != nullptr) {
    const std::unique_ptr<Fiber> fiber(std::exchange(first_free_, first_free_->next_free_));
  }
}

TW_UNSEEN_BY_TSAN void FiberPool::run_in_nursery(Fiber::Entry make, void* argument) {
  if constexpr (kTsan) {
    nursery_->make = make;
    nursery_->argument = argument;
    nursery_->fiber.resume();
  } else {
    make(argument);
  }
}

TW_UNSEEN_BY_TSAN Fiber* FiberPool::take_free() {
  Fiber* fiber = first_free_;
  if (fiber != nullptr) first_free_ = fiber->next_free_;
  return fiber;
}

std::unique_ptr<Fiber> FiberPool::take() {
  std::unique_ptr<Fiber> fiber(take_free());
  return fiber != nullptr ? std::move(fiber) : std::make_unique<Fiber>(stack_bytes_);
}

void FiberPool::give(std::unique_ptr<Fiber> fiber) {
  keep_free(fiber.release());
}

TW_UNSEEN_BY_TSAN void FiberPool::keep_free(Fiber* fiber) {
  fiber->next_free_ = first_free_;
  first_free_ = fiber;
}

Fiber::Fiber(std::size_t stack_bytes) : stack_(stack_bytes) {
  make_context();
}

Fiber::~Fiber() {
  if (tsan_own_ != nullptr) tsan_destroy(tsan_own_);
}

void Fiber::make_context() {
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.bottom();
  own_.uc_stack.ss_size = stack_.size();
  own_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  // makecontext passes ints: a pointer travels in two halves.
  makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::trampoline), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self & 0xffffffffU));
}

TW_UNSEEN_BY_TSAN void Fiber::start(Entry entry, void* argument) {
  entry_ = entry;
  argument_ = argument;
  finished_ = false;
  if constexpr (kTsan) {
    if (tsan_own_ != nullptr) {
      // In the context and on the stack of its last run it would look ordered after that run.
      tsan_destroy(tsan_own_);
      stack_.renew();
      make_context();
    }
  }
  tsan_own_ = tsan_create();  // last: the context knows what its maker has done so far
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
  reinterpret_cast<Fiber*>(self)->main();  // NOLINT(performance-no-int-to-ptr)
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
