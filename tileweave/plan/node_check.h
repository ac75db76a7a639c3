// NodeCheck: what an operator asks of its options and operands before it makes a node of them.
//
// Made once per call of an operator's node function; each check throws Error that names the node
// and, in one sentence, the operand or option, what must hold and what is there. Host only.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "tileweave/plan/tensor.h"

namespace tileweave {

class NodeCheck {
 public:
  /// "make rms_norm node `n`" begins every sentence.
  NodeCheck(const char* op, const std::string& name)
      : operation_(std::string("make ") + op + " node `" + name + "`") {}

  void need(bool holds, const std::string& expected, const std::string& got) const;

  void at_least(std::int64_t value, std::int64_t least, const char* what) const;
  void finite_and_positive(float value, const char* what) const;
  void finite_and_not_negative(float value, const char* what) const;
  /// Blocks and works are counted in 32 bits; `what` ("the tiles") must be large enough.
  void countable(std::int64_t works, const char* what = "the tiles") const;

  void matrix(const TensorSpec& t) const;
  void shape(const TensorSpec& t, const Shape& shape) const;
  /// One of these types.
  void type(const TensorSpec& t, std::initializer_list<DType> types) const;
  /// `role` ("the weight ") stands before the name.
  void constant(const TensorSpec& t, const char* role = "") const;
  /// Something that the node writes.
  void result(const TensorSpec& t) const;

 private:
  std::string operation_;
};

}  // namespace tileweave
