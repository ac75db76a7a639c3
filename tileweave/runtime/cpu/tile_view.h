// MatrixView and VectorView: an operand as a CPU kernel may touch it, judged by the device's
// checker.
//
// Kernels reach every element of an operand through `row` or `range`, which tells the checker (when
// the device runs with checking views) which box is about to be read or written; without a checker
// it is plain pointer arithmetic. `operand` is the operand's index in the NodeSpec.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tileweave/core/coord.h"
#include "tileweave/sync/cpu_lane.h"

namespace tileweave {

template <class T>
class MatrixView {
 public:
  /// `ld`: elements from one row to the next. T const: reads, otherwise writes.
  MatrixView(T* ptr, std::int64_t ld, int operand, AccessChecker* checker)
      : ptr_(ptr), ld_(ld), checker_(checker), operand_(operand) {}

  /// Elements [col, col + count) of row `row`.
  T* row(std::int64_t row, std::int64_t col, std::int64_t count) const {
    if (checker_ != nullptr) {
      const Box box{{row, col}, {1, count}};
      std::is_const_v<T> ? checker_->on_read(operand_, box) : checker_->on_write(operand_, box);
    }
    return ptr_ + row * ld_ + col;
  }

 private:
  T* ptr_;
  std::int64_t ld_;
  AccessChecker* checker_;
  int operand_;
};

template <class T>
class VectorView {
 public:
  /// T const: reads, otherwise writes.
  VectorView(T* ptr, int operand, AccessChecker* checker)
      : ptr_(ptr), checker_(checker), operand_(operand) {}

  /// Elements [first, first + count).
  T* range(std::int64_t first, std::int64_t count) const {
    if (checker_ != nullptr) {
      const Box box{{first}, {count}};
      std::is_const_v<T> ? checker_->on_read(operand_, box) : checker_->on_write(operand_, box);
    }
    return ptr_ + first;
  }

 private:
  T* ptr_;
  AccessChecker* checker_;
  int operand_;
};

}  // namespace tileweave
