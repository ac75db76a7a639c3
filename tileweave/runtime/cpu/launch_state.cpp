#include "tileweave/runtime/cpu/launch_state.h"

#include <algorithm>

namespace tileweave::cpu {

namespace {

bool covers(const Completion& later, const Completion& earlier) {
  return later.number >= earlier.number && (later.stream == -1 || later.stream == earlier.stream);
}

}  // namespace

void add_completion(std::vector<std::shared_ptr<Completion>>& list,
                    const std::shared_ptr<Completion>& completion) {
  for (const auto& held : list) {
    if (covers(*held, *completion)) return;
  }
  std::erase_if(list, [&](const auto& held) { return covers(*completion, *held); });
  list.push_back(completion);
}

}  // namespace tileweave::cpu
