// Routing: the reference against transformers and by hand, and the CPU form's arithmetic and
// declared boxes without a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/operand_values.h"
#include "tests/kernels/routing/hugging_face_routing.h"
#include "tests/kernels/serial_lane.h"
#include "tileweave/kernels/routing/routing.h"
#include "tileweave/kernels/routing/routing_args.h"
#include "tileweave/kernels/routing/routing_ref.h"

namespace tileweave {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

using Ids = std::vector<std::int32_t>;

struct Routed {
  Ids ids;
  std::vector<float> weights;
  bool operator==(const Routed&) const = default;
};

struct Input {
  std::vector<float> logits;  // (T, E)
  std::int64_t experts = 0;
  std::vector<float> bias = {};
  Ids sequences = {};
};

Routed route(const Input& input, RoutingOptions options) {
  const std::int64_t rows = static_cast<std::int64_t>(input.logits.size()) / input.experts;
  const std::int64_t k = options.rule.top_k;
  TensorTable tensors;
  const auto constant = [&](const char* name, const Shape& shape, DType type) {
    return tensors.add(
        {.name = name, .shape = shape, .dtype = type, .kind = TensorKind::kConstant});
  };
  RoutingTensors at;
  at.logits = tensors.add({.name = "logits", .shape = {rows, input.experts}});
  at.ids = tensors.add({.name = "ids", .shape = {rows, k}, .dtype = DType::kI32});
  at.weights = tensors.add({.name = "weights", .shape = {rows, k}});
  Input copy = input;
  Routed routed{Ids(static_cast<std::size_t>(rows * k), 77),
                std::vector<float>(static_cast<std::size_t>(rows * k), 77.0F)};
  Addresses addresses{.operands = {copy.logits.data(), routed.ids.data(), routed.weights.data()}};
  if (!input.bias.empty()) {
    at.bias = constant("bias", {input.experts}, DType::kF32);
    addresses.operands.push_back(copy.bias.data());
  }
  if (!input.sequences.empty()) {
    at.sequences = constant("sequences", {rows}, DType::kI32);
    addresses.operands.push_back(copy.sequences.data());
  }
  const NodeSpec node = routing(tensors, options, at);
  KernelLibrary kernels;
  add_routing_cpu(kernels);
  const SerialLane lane = run_serially<RoutingOperands::kSlots>(node, tensors, kernels, addresses);
  EXPECT_EQ(lane.signals(), 2 * node.num_works);
  return routed;
}

Routed route(const Input& input, const RoutingRule& rule) {
  return route(input, RoutingOptions{.rule = rule});
}

/// The function of scripts/goldens/routing.py.
float mixed(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t x = a * 0x9e3779b1U + b * 0x85ebca77U + c * 0xc2b2ae3dU + 0x27d4eb2fU;
  x = (x ^ (x >> 15)) * 0x2c1b3c6dU;
  x = (x ^ (x >> 12)) * 0x297a2d39U;
  return static_cast<float>((x ^ (x >> 15)) & 0xfffffU);
}

Input hugging_face_input(std::uint32_t number, const HuggingFaceRouting& golden) {
  Input input{.logits = {}, .experts = golden.experts};
  const auto experts = static_cast<std::uint32_t>(golden.experts);
  for (std::uint32_t r = 0; r < kHuggingFaceRows; ++r) {
    for (std::uint32_t e = 0; e < experts; ++e) {
      input.logits.push_back(mixed(number, r, e) / (1 << 17) - 4);
    }
  }
  for (std::uint32_t e = 0; golden.has_bias && e < experts; ++e) {
    input.bias.push_back(mixed(number, 1000, e) / (1 << 23));
  }
  return input;
}

RoutedRow reference(const Input& input, std::int64_t row, const RoutingRule& rule) {
  const auto experts = static_cast<std::size_t>(input.experts);
  return routing_reference(
      std::span(input.logits).subspan(static_cast<std::size_t>(row) * experts, experts), input.bias,
      rule);
}

TEST(RoutingHuggingFace, IdsAreEqualWhereScoresDifferAndWeightsWithinRounding) {
  std::uint32_t number = 0;
  for (const HuggingFaceRouting& golden : hugging_face_routing()) {
    SCOPED_TRACE(golden.name);
    const Input input = hugging_face_input(number++, golden);
    const Routed routed = route(input, golden.rule);
    const auto k = static_cast<std::size_t>(golden.rule.top_k);
    // Both sides round: twice the bound.
    const double tolerance = 2 * routing_relative_error(golden.experts, 8);
    int compared = 0;
    for (std::int64_t r = 0; r < kHuggingFaceRows; ++r) {
      const RoutedRow row = reference(input, r, golden.rule);
      if (row.margin < 1e-6) continue;  // fp32 may not tell them apart
      ++compared;
      const std::size_t first = static_cast<std::size_t>(r) * k;
      std::vector<std::pair<std::int32_t, double>> ours, refs;
      for (std::size_t i = 0; i < k; ++i) {
        ours.emplace_back(routed.ids[first + i], routed.weights[first + i]);
        refs.emplace_back(row.ids[i], row.weights[i]);
      }
      std::sort(ours.begin(), ours.end());
      std::sort(refs.begin(), refs.end());
      for (std::size_t i = 0; i < k; ++i) {
        const double theirs = std::bit_cast<float>(golden.weights[first + i]);
        ASSERT_EQ(ours[i].first, golden.ids[first + i]) << "row " << r;
        ASSERT_EQ(refs[i].first, golden.ids[first + i]) << "row " << r << ", reference";
        ASSERT_NEAR(ours[i].second, theirs, theirs * tolerance) << "row " << r;
        ASSERT_NEAR(refs[i].second, theirs, theirs * tolerance) << "row " << r << ", reference";
      }
    }
    EXPECT_GE(compared, kHuggingFaceRows - 2);
  }
  EXPECT_EQ(number, 5U);
}

/// Ids of one row, from both forms.
Ids ids_of(const std::vector<float>& logits, const RoutingRule& rule,
           const std::vector<float>& bias = {}) {
  const Input input{
      .logits = logits, .experts = static_cast<std::int64_t>(logits.size()), .bias = bias};
  const Routed routed = route(input, rule);
  EXPECT_EQ(routed.ids, reference(input, 0, rule).ids);
  return routed.ids;
}

std::vector<float> weights_of(const std::vector<float>& logits, const RoutingRule& rule) {
  return route({.logits = logits, .experts = static_cast<std::int64_t>(logits.size())}, rule)
      .weights;
}

TEST(RoutingByHand, ComesByFallingScoreTiesByLowestId) {
  EXPECT_EQ(ids_of({1, 3, 2, 3, 0}, {.top_k = 3}), (Ids{1, 3, 2}));
  EXPECT_EQ(ids_of({2, 2, 1, 2, 2}, {.top_k = 3}), (Ids{0, 1, 3}));
  for (const RoutingRule& rule : {olmoe_routing(3), qwen3_moe_routing(3), deepseek_v4_routing(3)}) {
    EXPECT_EQ(ids_of({5, 5, 5, 5, 5, 5}, rule), (Ids{0, 1, 2})) << "all equal";
  }
  EXPECT_EQ(ids_of({0, -0.0F, 0}, {.top_k = 2}), (Ids{0, 1})) << "the two zeros are equal";
}

TEST(RoutingByHand, OneOfAllAndAllOfThem) {
  EXPECT_EQ(ids_of({1, 3, 2}, {.top_k = 1}), (Ids{1}));
  EXPECT_EQ(weights_of({1, 3, 2}, {.top_k = 1}), (std::vector<float>{1}));
  EXPECT_EQ(ids_of({1, 3, 2}, {.top_k = 3}), (Ids{1, 2, 0}));
  EXPECT_EQ(ids_of({7}, {.top_k = 1}), (Ids{0}));
  const auto all = weights_of({1, 3, 2}, olmoe_routing(3));
  EXPECT_NEAR(all[0] + all[1] + all[2], 1, 1e-6);
}

TEST(RoutingByHand, SoftmaxWithAndWithoutRenormalisation) {
  // exp of 0, log 2, log 4, log 9 over their sum 16.
  const std::vector<float> logits = {0, std::log(2.0F), std::log(4.0F), std::log(9.0F)};
  const auto plain = weights_of(logits, olmoe_routing(2));
  EXPECT_FLOAT_EQ(plain[0], 9.0F / 16);
  EXPECT_FLOAT_EQ(plain[1], 4.0F / 16);
  const auto renormalised = weights_of(logits, mixtral_routing());
  EXPECT_FLOAT_EQ(renormalised[0], 9.0F / 13);
  EXPECT_FLOAT_EQ(renormalised[1], 4.0F / 13);
}

TEST(RoutingByHand, BiasChoosesButDoesNotWeigh) {
  // Sigmoid of 0 is a half; the bias lifts expert 2 over expert 0.
  RoutingRule rule{.score = RoutingScore::kSigmoid, .top_k = 1, .scale = 3};
  EXPECT_EQ(ids_of({0.5F, 0, 0}, rule, {0, 0, 1}), (Ids{2}));
  rule.renormalise = Renormalise::kNo;
  const Routed routed = route({.logits = {0.5F, 0, 0}, .experts = 3, .bias = {0, 0, 1}}, rule);
  EXPECT_EQ(routed.weights, (std::vector<float>{1.5F}));
}

TEST(RoutingByHand, GroupsAreRankedByTheSumOfTheirTwoBest) {
  // Groups of 3: the largest logit is in group 0, but group 1 has the better two. Group 2 is weak.
  const RoutingRule rule{
      .score = RoutingScore::kSigmoid, .top_k = 2, .num_groups = 3, .top_groups = 1};
  EXPECT_EQ(ids_of({4, -9, -9, 2, 3, -9, 0, 0, 0}, rule), (Ids{4, 3}));
  // Equal groups: the lowest stays.
  EXPECT_EQ(ids_of({1, 1, 0, 1, 1, 0, 1, 1, 0}, rule), (Ids{0, 1}));
  // All experts of the groups that stay.
  RoutingRule wide = rule;
  wide.top_groups = 2;
  wide.top_k = 6;
  EXPECT_EQ(ids_of({4, -9, -9, 2, 3, -9, 0, 0, 0}, wide), (Ids{4, 3, 6, 7, 8, 5}));
}

TEST(RoutingByHand, MinusInfinityMasksAndWhatIsMissingIsMinusOne) {
  EXPECT_EQ(ids_of({-kInf, 1, -kInf, 0}, {.top_k = 3}), (Ids{1, 3, -1}));
  EXPECT_EQ(ids_of({-kInf, -kInf}, {.top_k = 2}), (Ids{-1, -1}));
  EXPECT_EQ(ids_of({-kInf, 1, -kInf, 0}, deepseek_v4_routing(3)), (Ids{1, 3, -1}));
  for (const RoutingRule& rule : {olmoe_routing(2), mixtral_routing(), deepseek_v4_routing(2)}) {
    EXPECT_EQ(weights_of({-kInf, -kInf, -kInf}, rule), (std::vector<float>{0, 0}));
    EXPECT_EQ(weights_of({-kInf, 2, -kInf}, rule)[1], 0);
  }
  EXPECT_FLOAT_EQ(weights_of({-kInf, 2, -kInf}, mixtral_routing())[0], 1);
}

TEST(RoutingByHand, LargeLogitsDoNotOverflow) {
  EXPECT_EQ(weights_of({300, 299, -300}, olmoe_routing(1)),
            weights_of({1, 0, -599}, olmoe_routing(1)));
  const auto weights = weights_of({3e38F, -3e38F, 200}, deepseek_v4_routing(2));
  EXPECT_TRUE(std::isfinite(weights[0]) && std::isfinite(weights[1]));
  EXPECT_FLOAT_EQ(weights[0], 1.5F);
}

TEST(RoutingSerial, AgreesWithTheReferenceForEveryRuleAndSize) {
  struct Rule {
    const char* name;
    RoutingRule rule;
    bool has_bias;
  };
  for (const std::int64_t experts : {8, 61, 64, 256}) {
    std::vector<Rule> rules = {{"softmax", olmoe_routing(5), false},
                               {"renormalised", qwen3_moe_routing(8), false},
                               {"softmax with bias", qwen3_moe_routing(4), true},
                               {"sqrt softplus", deepseek_v4_routing(6), true}};
    if (experts % 8 == 0 && experts > 8) {
      rules.push_back({"sigmoid, groups", deepseek_v3_routing(8), true});
      RoutingRule softmax_groups = deepseek_v3_routing(7);
      softmax_groups.score = RoutingScore::kSoftmax;
      rules.push_back({"softmax, groups", softmax_groups, false});
    }
    for (const Rule& rule : rules) {
      SCOPED_TRACE(std::string(rule.name) + ", " + std::to_string(experts) + " experts");
      const std::int64_t rows = 67;
      Input input{.logits = random_values<float>(rows * experts, 5), .experts = experts};
      for (float& logit : input.logits) logit *= 9;
      if (rule.has_bias) input.bias = random_values<float>(experts, 6);
      const Routed routed = route(input, rule.rule);
      const auto k = static_cast<std::size_t>(rule.rule.top_k);
      int compared = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const RoutedRow row = reference(input, r, rule.rule);
        if (row.margin < 1e-6) continue;
        ++compared;
        for (std::size_t i = 0; i < k; ++i) {
          const std::size_t at = static_cast<std::size_t>(r) * k + i;
          // Two of the chosen may change places where rounding makes them equal.
          if (routed.ids[at] != row.ids[i]) continue;
          ASSERT_NEAR(routed.weights[at], row.weights[i],
                      row.weights[i] * routing_relative_error(experts, 18));
        }
        Ids ours(routed.ids.begin() + r * rule.rule.top_k,
                 routed.ids.begin() + (r + 1) * rule.rule.top_k);
        Ids theirs = row.ids;
        std::sort(ours.begin(), ours.end());
        std::sort(theirs.begin(), theirs.end());
        ASSERT_EQ(ours, theirs) << "row " << r;
      }
      // Of softmax shares many are tiny, and so are their margins.
      EXPECT_GE(compared, rule.rule.score == RoutingScore::kSoftmax ? 1 : 60);
    }
  }
}

TEST(RoutingSerial, BitsOfARowDoNotDependOnTilesOrderOrOtherRows) {
  const std::int64_t experts = 64, rows = 13;
  Input input{.logits = random_values<float>(rows * experts, 7), .experts = experts};
  input.bias = random_values<float>(experts, 8);
  for (const RoutingRule& rule : {olmoe_routing(), deepseek_v3_routing()}) {
    const Routed expected = route(input, rule);
    for (const std::int64_t tile_m : {1, 3, 12, 13, 100}) {
      for (const std::int64_t num_blocks : {0, 2}) {
        EXPECT_TRUE(route(input, {.rule = rule,
                                  .tile_m = tile_m,
                                  .num_blocks = num_blocks,
                                  .order = TileOrder::rotation(1)}) == expected);
      }
    }
    Input alone = input;
    alone.logits.assign(input.logits.begin() + 5 * experts, input.logits.begin() + 6 * experts);
    const Routed row = route(alone, rule);
    EXPECT_TRUE(std::equal(row.ids.begin(), row.ids.end(), expected.ids.begin() + 5 * 8));
    EXPECT_TRUE(
        std::equal(row.weights.begin(), row.weights.end(), expected.weights.begin() + 5 * 8));
  }
}

TEST(RoutingSerial, PaddingRowsAreMaskedWhateverTheyHold) {
  const Input input{.logits = {1, 2, kNan, kInf, 4, 3}, .experts = 2, .sequences = {0, -1, 5}};
  const Routed routed = route(input, mixtral_routing());
  EXPECT_EQ(routed.ids, (Ids{1, 0, -1, -1, 0, 1}));
  EXPECT_EQ(routed.weights[2] + routed.weights[3], 0);
}

template <class Act>
std::string sentence(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(RoutingSerial, NamesTokenAndExpertOfAScoreThatIsNoNumber) {
  EXPECT_EQ(sentence([] {
              route({.logits = {1, 2, 3, kNan}, .experts = 2}, mixtral_routing());
            }),
            "route token 1: scores that are numbers, got NaN for expert 1");
  EXPECT_EQ(sentence([] {
              route({.logits = {kInf, 2}, .experts = 2}, mixtral_routing());
            }),
            "route token 0: scores that are numbers, got +inf for expert 0");
  EXPECT_EQ(sentence([] {
              routing_reference(std::vector<float>{1, kNan}, {}, mixtral_routing());
            }),
            "route a token: scores that are numbers, got NaN for expert 1");
}

TEST(RoutingNode, RefusesWhatDoesNotFitInOneSentence) {
  TensorTable tensors;
  const auto add = [&](const char* name, const Shape& shape, DType type = DType::kF32,
                       TensorKind kind = TensorKind::kValue) {
    return tensors.add({.name = name, .shape = shape, .dtype = type, .kind = kind});
  };
  const RoutingTensors good{.logits = add("x", {3, 16}),
                            .ids = add("ids", {3, 2}, DType::kI32),
                            .weights = add("w", {3, 2})};
  const TensorId vector = add("vector", {16});
  const auto of = [&](const RoutingTensors& at, const RoutingOptions& options) {
    return sentence([&] { routing(tensors, options, at); });
  };
  const auto with = [&](RoutingRule rule) { return of(good, {.rule = rule}); };
  const std::string who = "make routing node `routing`: ";
  EXPECT_EQ(with({.top_k = 2}), "no error");
  EXPECT_EQ(with({.top_k = 17}), who + "a top k of 1 to 16, the number of experts, got 17");
  EXPECT_EQ(with({.top_k = 0}), who + "a top k of 1 to 16, the number of experts, got 0");
  EXPECT_EQ(with({.top_k = 2, .num_groups = 3}),
            who + "a number of groups that divides 16 experts, got 3");
  EXPECT_EQ(with({.top_k = 2, .num_groups = 4, .top_groups = 5}),
            who + "1 to 4 groups to stay, got 5");
  EXPECT_EQ(with({.top_k = 2, .num_groups = 16}), who + "at least two experts in a group, got 1");
  EXPECT_EQ(with({.top_k = 5, .num_groups = 4, .top_groups = 1}),
            who + "a top k of at most 4, the experts of the groups that stay, got 5");
  EXPECT_EQ(with({.top_k = 2, .scale = kInf}),
            who + "a finite scale and an epsilon of at least 0, got inf and 0.000000");
  EXPECT_EQ(with({.top_k = 3}), who + "`ids` must be (3, 3), got (3, 2)");
  RoutingTensors at = good;
  at.logits = vector;
  EXPECT_EQ(of(at, {.rule = {.top_k = 2}}), who + "`vector` must be a matrix, got shape (16)");
  at = good;
  at.ids = good.weights;
  EXPECT_EQ(of(at, {.rule = {.top_k = 2}}), who + "`w` must be i32, got f32");
  at = good;
  at.bias = vector;
  EXPECT_EQ(of(at, {.rule = {.top_k = 2}}), who + "`vector` must be constant, got value");
  at = good;
  at.sequences = add("rows", {4}, DType::kI32, TensorKind::kConstant);
  EXPECT_EQ(of(at, {.rule = {.top_k = 2}}), who + "`rows` must be (3), got (4)");
  at = good;
  at.weights = add("c", {3, 2}, DType::kF32, TensorKind::kConstant);
  EXPECT_EQ(of(at, {.rule = {.top_k = 2}}),
            who + "the result `c` must not be constant, got a constant");
  EXPECT_EQ(of(good, {.rule = {.top_k = 2}, .tile_m = 0}),
            who + "tile_m must be at least 1, got 0");
}

}  // namespace
}  // namespace tileweave
