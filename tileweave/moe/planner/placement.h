// Placement: how many blocks of every expert every rank computes, with the sums that a planner
// needs.
//
// A view of caller-owned words (workspace.h lays them out). A rank holds a replica of an expert
// exactly while it does not own it and has at least one of its blocks; move() keeps `load`,
// `replicas` and `exported` right. Pure integer arithmetic, host and device; no checks.
#pragma once

#include <cstdint>

#include "tileweave/moe/planner/planner_shape.h"

namespace tileweave {

struct Placement {
  PlannerShape shape;
  std::int32_t* blocks;    // (E, P)
  std::int32_t* load;      // (P) blocks of the rank
  std::int32_t* replicas;  // (P) slots of the rank in use
  std::int32_t* exported;  // (P) replicas, on other ranks, of experts that the rank owns

  TW_HOST_DEVICE static constexpr std::int64_t num_words(const PlannerShape& shape) {
    return (static_cast<std::int64_t>(shape.num_experts) + 3) * shape.num_ranks;
  }
  TW_HOST_DEVICE static constexpr Placement at(std::int32_t* words, const PlannerShape& shape) {
    const std::int64_t ranks = shape.num_ranks;
    return {shape, words + 3 * ranks, words, words + ranks, words + 2 * ranks};
  }

  TW_HOST_DEVICE constexpr std::int32_t* row(std::int32_t expert) const {
    return blocks + static_cast<std::int64_t>(expert) * shape.num_ranks;
  }
  TW_HOST_DEVICE constexpr std::int32_t of(std::int32_t expert, std::int32_t rank) const {
    return row(expert)[rank];
  }
  TW_HOST_DEVICE constexpr bool has_weights(std::int32_t expert, std::int32_t rank) const {
    return of(expert, rank) > 0 || shape.owner_of(expert) == rank;
  }
  TW_HOST_DEVICE constexpr void move(std::int32_t expert, std::int32_t from, std::int32_t to,
                                     std::int32_t count) const {
    const std::int32_t owner = shape.owner_of(expert);
    std::int32_t* on = row(expert);
    if (to != owner && on[to] == 0) ++replicas[to], ++exported[owner];
    on[from] -= count, load[from] -= count;
    on[to] += count, load[to] += count;
    if (from != owner && on[from] == 0) --replicas[from], --exported[owner];
  }
  TW_HOST_DEVICE constexpr std::int32_t max_load() const {
    std::int32_t most = 0;
    for (std::int32_t g = 0; g < shape.num_ranks; ++g) most = load[g] > most ? load[g] : most;
    return most;
  }
  TW_HOST_DEVICE constexpr std::int32_t num_replicas() const {
    std::int32_t sum = 0;
    for (std::int32_t g = 0; g < shape.num_ranks; ++g) sum += replicas[g];
    return sum;
  }
  /// Every block on the owner of its expert: fixed placement.
  TW_HOST_DEVICE constexpr void reset(const std::int32_t* expert_blocks) const {
    const std::int64_t words = num_words(shape);
    for (std::int64_t i = 0; i < words; ++i) load[i] = 0;
    for (std::int32_t g = 0, e = 0; g < shape.num_ranks; ++g) {
      for (std::int32_t i = 0; i < shape.num_owned(g); ++i, ++e) {
        row(e)[g] = expert_blocks[e];
        load[g] += expert_blocks[e];
      }
    }
  }
  TW_HOST_DEVICE constexpr void copy_from(const Placement& other) const {
    const std::int64_t words = num_words(shape);
    for (std::int64_t i = 0; i < words; ++i) load[i] = other.load[i];
  }
};

}  // namespace tileweave
