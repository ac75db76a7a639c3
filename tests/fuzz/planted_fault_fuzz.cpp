// A program with a fault: proves that a finding fails its case (can_fail.sh).
#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size >= 3 && data[0] == 'b' && data[1] == 'a' && data[2] == 'd') __builtin_trap();
  return 0;
}
