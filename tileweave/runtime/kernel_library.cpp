#include "tileweave/runtime/kernel_library.h"

#include <utility>

#include "tileweave/core/error.h"

namespace tileweave {

void KernelLibrary::add(KernelImpl kernel) {
  require(!kernel.name.empty(), "add kernel", "a name");
  std::string name = kernel.name;
  kernels_.insert_or_assign(std::move(name), std::move(kernel));
}

const KernelImpl& KernelLibrary::find(const std::string& name) const {
  const auto found = kernels_.find(name);
  if (found != kernels_.end()) return found->second;
  std::string held;
  for (const auto& [known, kernel] : kernels_) held += (held.empty() ? "`" : ", `") + known + "`";
  throw Error("find kernel", "`" + name + "` among the kernels of this device",
              held.empty() ? "an empty library" : held);
}

}  // namespace tileweave
