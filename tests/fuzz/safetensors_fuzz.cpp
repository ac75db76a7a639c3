// Safetensors files. Half of the inputs are a file as it is; in the others the first line is the
// header and its length is made right, so that the fuzzer gets past the first check.
#include <string>

#include "tests/fuzz/fuzz_input.h"
#include "tileweave/models/checkpoint/safetensors.h"

namespace tileweave::fuzz {
namespace {

void read(std::string_view file) {
  const auto bytes = std::as_bytes(std::span(file));
  const Safetensors tensors = Safetensors::view(bytes, "fuzz");
  std::size_t total = 0;
  volatile unsigned sum = 0;  // touches every byte
  const std::byte* end = nullptr;
  for (const StoredTensor& tensor : tensors.tensors()) {
    for (const std::byte byte : tensor.bytes) sum = sum + static_cast<unsigned>(byte);
    total += tensor.bytes.size();
    demand(end == nullptr || tensor.bytes.data() == end);
    end = tensor.bytes.data() + tensor.bytes.size();
    demand(tensors.find(tensor.name) == &tensor);
    if (!tensor.dtype) continue;
    std::size_t size = size_of(dtype_of(tensor));
    for (const std::int64_t extent : tensor.shape) size *= static_cast<std::size_t>(extent);
    demand(size == tensor.bytes.size());
  }
  demand(total < bytes.size());
}

}  // namespace
}  // namespace tileweave::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tileweave::fuzz;
  if (size == 0) return 0;
  const std::string_view rest = text_of(data, size).substr(1);
  if (data[0] % 2 == 0) {
    may_refuse([&] { read(rest); });
    return 0;
  }
  const std::size_t line = rest.find('\n');
  const std::string_view header = rest.substr(0, line);
  std::string file;
  for (unsigned i = 0; i < 8; ++i) {
    file += static_cast<char>((std::uint64_t{header.size()} >> (8 * i)) & 0xff);
  }
  file += header;
  if (line != std::string_view::npos) file += rest.substr(line + 1);
  may_refuse([&] { read(file); });
  return 0;
}
