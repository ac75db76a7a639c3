// What the sanitizers must be told about fibers, and what must be hidden from ThreadSanitizer.
//
// Every lane of a block is a context of its own for ThreadSanitizer, born from a *nursery* context
// that has synchronised with nobody. Switches from a scheduler to a fiber carry no order, switches
// back do: a scheduler sees what its fibers did, a fiber sees nothing but what it acquired itself.
// So a race that the kernel or the protocol leaves open is found, and none that is not there.
// All of it disappears from builds without sanitizers.
#pragma once

#include <cstddef>

#include "tileweave/core/target.h"

/// On functions of the scheduler that look at what a fiber wrote (a wait, for instance), after
/// which the fiber may write again: one thread runs both, so there is nothing to find there.
#define TW_UNSEEN_BY_TSAN __attribute__((no_sanitize("thread"), noinline))

// The sanitizers chose these names.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __sanitizer_start_switch_fiber(void** fake_stack_save, const void* bottom, std::size_t size);
void __sanitizer_finish_switch_fiber(void* fake_stack_save, const void** bottom_old,
                                     std::size_t* size_old);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace tileweave::cpu {

inline constexpr bool kTsan = TW_TSAN;
inline constexpr bool kAsan = TW_ASAN;

/// Whether a switch of contexts orders what came before it with what comes after.
enum class SwitchOrder : unsigned { kOrdered = 0, kUnordered = 1 };

inline void* tsan_current() {
  if constexpr (kTsan) return __tsan_get_current_fiber();
  return nullptr;
}
inline void* tsan_create() {
  if constexpr (kTsan) return __tsan_create_fiber(0);
  return nullptr;
}
inline void tsan_destroy(void* context) {
  if constexpr (kTsan) __tsan_destroy_fiber(context);
}
inline void tsan_switch(void* context, SwitchOrder order) {
  if constexpr (kTsan) __tsan_switch_to_fiber(context, static_cast<unsigned>(order));
}

}  // namespace tileweave::cpu
