#include "tileweave/plan/node_check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"

namespace tileweave {
namespace {

std::string quoted(const TensorSpec& t) {
  return "`" + t.name + "`";
}

/// "f32", "f32 or bf16", "f32, bf16 or f16".
std::string either(std::initializer_list<DType> types) {
  std::string words;
  std::size_t left = types.size();
  for (const DType type : types) {
    words += name_of(type);
    --left;
    if (left > 0) words += left == 1 ? " or " : ", ";
  }
  return words;
}

}  // namespace

void NodeCheck::need(bool holds, const std::string& expected, const std::string& got) const {
  if (!holds) throw Error(operation_, expected, got);
}

void NodeCheck::at_least(std::int64_t value, std::int64_t least, const char* what) const {
  need(value >= least, std::string(what) + " must be at least " + std::to_string(least),
       std::to_string(value));
}

void NodeCheck::finite_and_positive(float value, const char* what) const {
  need(std::isfinite(value) && value > 0, std::string(what) + " must be finite and positive",
       std::to_string(value));
}

void NodeCheck::finite_and_not_negative(float value, const char* what) const {
  need(std::isfinite(value) && value >= 0, std::string(what) + " must be finite and not negative",
       std::to_string(value));
}

void NodeCheck::countable(std::int64_t works, const char* what) const {
  need(works <= std::numeric_limits<std::int32_t>::max(),
       std::string(what) + " must be large enough for at most 2^31 - 1 of them",
       std::to_string(works));
}

void NodeCheck::matrix(const TensorSpec& t) const {
  need(t.shape.num_axes == 2, quoted(t) + " must be a matrix", "shape " + to_string(t.shape));
}

void NodeCheck::shape(const TensorSpec& t, const Shape& shape) const {
  need(t.shape == shape, quoted(t) + " must be " + to_string(shape), to_string(t.shape));
}

void NodeCheck::type(const TensorSpec& t, std::initializer_list<DType> types) const {
  need(std::find(types.begin(), types.end(), t.dtype) != types.end(),
       quoted(t) + " must be " + either(types), name_of(t.dtype));
}

void NodeCheck::constant(const TensorSpec& t, const char* role) const {
  need(t.kind == TensorKind::kConstant, role + quoted(t) + " must be constant", name_of(t.kind));
}

void NodeCheck::result(const TensorSpec& t) const {
  need(t.kind != TensorKind::kConstant, "the result " + quoted(t) + " must not be constant",
       "a constant");
}

}  // namespace tileweave
