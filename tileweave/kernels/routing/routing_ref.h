// Routing in plain loops with fp64 arithmetic: oracle and documentation. Never tuned. Host only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tileweave/kernels/routing/routing_rule.h"

namespace tileweave {

struct RoutedRow {
  std::vector<std::int32_t> ids;  // (k), by falling choice; -1: masked
  std::vector<double> weights;    // (k)
  /// Between the k-th choice and the best that was not chosen, and between groups that stay and
  /// those that do not: below the rounding of fp32 the ids may differ. Infinite: no rival.
  double margin = 0;
};

/// One token. `bias`: one per expert, or none. Throws Error for NaN, +inf and a rule that cannot be
/// followed.
RoutedRow routing_reference(std::span<const float> logits, std::span<const float> bias,
                            const RoutingRule& rule);

/// Largest relative error of a weight computed in fp32 by routing.h's rule.
///
/// With u = 2^-24: the argument of exp has one rounding, |x| u absolute, which is that relative to
/// the result; exp, log1p and sqrt are right to 2 u each; sums of at most E terms, added in double
/// or in any order in fp32, to E u; the remaining quotients and products to 4 u. `spread`: the
/// largest |logit| (sigmoid, softplus) or distance between logits (softmax).
double routing_relative_error(std::int64_t num_experts, double spread);

}  // namespace tileweave
