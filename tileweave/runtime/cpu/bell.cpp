#include "tileweave/runtime/cpu/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace tileweave::cpu {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t),
              "a futex is a plain 32-bit word");

bool Bell::sleep(std::uint32_t heard, std::int64_t microseconds) {
  timespec span{};
  span.tv_sec = microseconds / 1'000'000;
  span.tv_nsec = microseconds % 1'000'000 * 1000;
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&rings_), FUTEX_WAIT_PRIVATE, heard, &span,
          nullptr, 0);
  return listen() != heard;
}

void Bell::ring() {
  rings_.fetch_add(1, std::memory_order_relaxed);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&rings_), FUTEX_WAKE_PRIVATE, INT_MAX,
          nullptr, nullptr, 0);
}

}  // namespace tileweave::cpu
