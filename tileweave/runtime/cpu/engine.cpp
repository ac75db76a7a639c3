#include "tileweave/runtime/cpu/engine.h"

#include <atomic>
#include <exception>

#include "tileweave/core/error.h"

namespace tileweave::cpu {

void set_abort(std::uint32_t* abort) {
  if (abort == nullptr) return;
  std::uint32_t expected = 0;
  std::atomic_ref<std::uint32_t>(*abort).compare_exchange_strong(expected, 1,
                                                                 std::memory_order_relaxed);
}

bool abort_is_set(const std::uint32_t* abort) {
  return abort != nullptr && std::atomic_ref<std::uint32_t>(*const_cast<std::uint32_t*>(abort))
                                     .load(std::memory_order_relaxed) != 0;
}

Error kernel_error(const LaunchState& state, std::int64_t block, const std::string& what) {
  return Error("run node " + std::to_string(state.launch->node) + " `" + state.name() + "`",
               "block " + std::to_string(block) + " to end without an exception", what);
}

std::string run_call(LaunchState& state) {
  state.enqueued.load(std::memory_order_acquire);
  for (const auto& before : state.begins_after) before->word.load(std::memory_order_acquire);
  std::string failure;
  try {
    state.launch->call(nullptr);
  } catch (const std::exception& thrown) {
    failure = thrown.what();
    if (failure.empty()) failure = "an exception that says nothing";
  } catch (...) {
    failure = "an exception of an unknown type";
  }
  state.completion->word.fetch_add(1, std::memory_order_release);
  return failure;
}

}  // namespace tileweave::cpu
