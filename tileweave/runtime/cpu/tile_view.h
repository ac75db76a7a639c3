// MatrixView, TensorView: how an operator of the emulated device touches a tensor.
//
//   const MatrixView<const float> x(args.x, args.k, 0, lane.checker());
//   const float* row = x.row(i, k0, n);   // elements (i, k0) .. (i, k0 + n)
//
// Asking for elements tells the block's AccessChecker, where the device has one (CheckViews::kOn),
// which throws Error for what the node did not declare; otherwise it is a pointer plus one branch
// that is always the same. A view of const T reads, a view of T writes. The operand is the index in
// the NodeSpec. Views are made per block and live no longer than it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tileweave/core/coord.h"
#include "tileweave/sync/cpu_lane.h"

namespace tileweave {

namespace detail {

template <class T>
void tell(AccessChecker& checker, int operand, const Box& box) {
  if constexpr (std::is_const_v<T>) {
    checker.on_read(operand, box);
  } else {
    checker.on_write(operand, box);
  }
}

}  // namespace detail

/// A row-major matrix, rows `row_stride` elements apart.
template <class T>
class MatrixView {
 public:
  MatrixView(T* elements, std::int64_t row_stride, int operand, AccessChecker* checker)
      : elements_(elements), row_stride_(row_stride), operand_(operand), checker_(checker) {}

  /// Elements (i, j) .. (i, j + n).
  T* row(std::int64_t i, std::int64_t j, std::int64_t n) const {
    if (checker_ != nullptr) [[unlikely]] {
      detail::tell<T>(*checker_, operand_, Box{{i, j}, {1, n}});
    }
    return elements_ + i * row_stride_ + j;
  }
  /// First element of `rows` x `columns` elements from (i, j) on, rows row_stride() apart.
  T* block(std::int64_t i, std::int64_t j, std::int64_t rows, std::int64_t columns) const {
    if (checker_ != nullptr) [[unlikely]] {
      detail::tell<T>(*checker_, operand_, Box{{i, j}, {rows, columns}});
    }
    return elements_ + i * row_stride_ + j;
  }
  std::int64_t row_stride() const { return row_stride_; }

 private:
  T* elements_;
  std::int64_t row_stride_;
  int operand_;
  AccessChecker* checker_;
};

/// A row-major, contiguous tensor of any number of axes.
template <class T>
class TensorView {
 public:
  TensorView(T* elements, const Shape& shape, int operand, AccessChecker* checker)
      : elements_(elements), shape_(shape), operand_(operand), checker_(checker) {}

  /// `n` elements along the last axis from `begin` (one coordinate per axis) on.
  T* run(const Coord& begin, std::int64_t n) const {
    if (checker_ != nullptr) [[unlikely]] {
      Box box{begin, Coord::filled(shape_.num_axes, 1)};
      box.begin.num_axes = shape_.num_axes;
      box.size[shape_.num_axes - 1] = n;
      detail::tell<T>(*checker_, operand_, box);
    }
    std::int64_t at = 0;
    for (int a = 0; a < shape_.num_axes; ++a) at = at * shape_[a] + begin[a];
    return elements_ + at;
  }

 private:
  T* elements_;
  Shape shape_;
  int operand_;
  AccessChecker* checker_;
};

}  // namespace tileweave
