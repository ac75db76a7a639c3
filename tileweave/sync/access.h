// Typed pointers in kernel arguments that say when a tensor may be touched.
//
// `Stable<T>`: constants, and boxes of state that the run does not write; readable before any wait,
// so a kernel may prefetch through it in its prologue. `Produced<T>`: written during the run;
// yields a pointer only for the token that `wait_input` returns, which makes "read before the wait"
// a compile error. `Output<T>`: written by this kernel, signalled after the last write. Plain
// device pointers underneath; never mark them `__restrict__ const` in a kernel, since the compiler
// may then use the non-coherent load path on produced data.
#pragma once

#include "tileweave/core/target.h"

namespace tileweave {

/// Result of a wait. False means the run is being aborted: touch nothing, signal nothing, return.
class Ready {
 public:
  TW_HOST_DEVICE constexpr explicit Ready(bool ok) : ok_(ok) {}
  TW_HOST_DEVICE constexpr explicit operator bool() const { return ok_; }

 private:
  bool ok_;
};

template <class T>
struct Stable {
  const T* ptr = nullptr;
  TW_HOST_DEVICE constexpr const T* get() const { return ptr; }
};

template <class T>
struct Produced {
  const T* ptr = nullptr;
  TW_HOST_DEVICE constexpr const T* get(const Ready&) const { return ptr; }
};

template <class T>
struct Output {
  T* ptr = nullptr;
  TW_HOST_DEVICE constexpr T* get() const { return ptr; }
};

}  // namespace tileweave
