// NodeCheck: the sentences with which this folder's operators refuse operands and options.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/plan/tensor.h"

namespace tileweave {

class NodeCheck {
 public:
  /// `operation`: "make argmax node `name`".
  explicit NodeCheck(std::string operation) : operation_(std::move(operation)) {}

  void need(bool holds, const std::string& expected, const std::string& got = {}) const {
    if (!holds) throw Error(operation_, expected, got);
  }
  void matrix(const Tensor& tensor) const {
    need(tensor.spec.shape.num_axes == 2, quoted(tensor) + " must be a matrix",
         "shape " + to_string(tensor.spec.shape));
  }
  void type(const Tensor& tensor, DType type) const {
    need(tensor.spec.dtype == type, quoted(tensor) + " must be " + name_of(type),
         name_of(tensor.spec.dtype));
  }
  void shape(const Tensor& tensor, const Shape& shape) const {
    need(tensor.spec.shape == shape, quoted(tensor) + " must be " + to_string(shape),
         to_string(tensor.spec.shape));
  }
  void constant(const Tensor& tensor) const {
    need(tensor.spec.kind == TensorKind::kConstant, quoted(tensor) + " must be constant",
         name_of(tensor.spec.kind));
  }
  void result(const Tensor& tensor) const {
    need(tensor.spec.kind != TensorKind::kConstant,
         "the result " + quoted(tensor) + " must not be constant");
  }
  void at_least(std::int64_t value, std::int64_t least, const char* what) const {
    need(value >= least, std::string(what) + " must be at least " + std::to_string(least),
         std::to_string(value));
  }

  static std::string quoted(const Tensor& tensor) { return "`" + tensor.spec.name + "`"; }

 private:
  std::string operation_;
};

}  // namespace tileweave
