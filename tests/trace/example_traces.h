// Traces for the tests of trace/: hand-counted ones, and a list scheduler for larger ones.
//
// The scheduler is a stand-in for a device: it places blocks in node order on the SM slot that is
// free first, lets them wait for their producers and records what happened.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tileweave/trace/trace.h"

namespace tileweave::testing {

/// Two GEMMs of 2 x 2 tiles on 3 SMs, one unit of time per tile; the tiles of row r of the second
/// wait for the two tiles of row r of the first. `starts` are the begin times of the second GEMM.
struct Figure1Tile {
  std::uint32_t sm;
  std::uint64_t begin;
};
inline Trace figure1(const std::string& title, const std::vector<Figure1Tile>& second) {
  Trace trace;
  trace.title = title;
  trace.clock = "modelled";
  trace.time_unit = "ticks";
  trace.num_sms = 3;
  trace.nodes = {{.name = "GEMM X", .position = 0, .rank = 0, .op = "gemm"},
                 {.name = "GEMM Y", .position = 1, .rank = 0, .op = "gemm"}};
  const std::vector<Figure1Tile> first = {{0, 0}, {1, 0}, {2, 0}, {0, 1}};
  for (std::uint32_t node = 0; node < 2; ++node) {
    for (std::uint32_t tile = 0; tile < 4; ++tile) {
      const Figure1Tile& at = node == 0 ? first[tile] : second[tile];
      trace.records.push_back({.node = node,
                               .rank = 0,
                               .work = tile,
                               .sm = at.sm,
                               .begin_ns = at.begin,
                               .wait_ns = node == 0 ? 0 : at.begin,
                               .ready_ns = node == 0 ? 0 : at.begin,
                               .signal_ns = at.begin + 1,
                               .end_ns = at.begin + 1});
    }
  }
  const std::uint32_t tensor = trace.tensor_id("X");
  for (std::uint32_t consumer = 0; consumer < 4; ++consumer) {
    for (std::uint32_t column = 0; column < 2; ++column) {
      trace.add_arrow(consumer / 2 * 2 + column, 4 + consumer, tensor, consumer / 2);
    }
  }
  return trace;
}
inline Trace figure1_serial() {
  return figure1("Figure 1, serial", {{0, 2}, {1, 2}, {2, 2}, {0, 3}});
}
inline Trace figure1_overlap() {
  return figure1("Figure 1, overlap", {{1, 1}, {2, 1}, {0, 2}, {1, 2}});
}

struct ScheduledNode {
  std::string name;
  std::string op;
  std::uint32_t num_tiles = 1;
  std::uint64_t prologue_ns = 0;
  std::uint64_t body_ns = 1000;
  std::uint32_t num_data_tiles = 1;  // what the node's output is cut into
  bool waits_for_all = true;         // every data tile of the predecessor, or the matching one
};

inline Trace schedule(std::string title, const std::vector<ScheduledNode>& nodes, int num_sms,
                      int slots_per_sm, std::uint32_t rank, std::uint64_t start, unsigned seed) {
  Trace trace;
  trace.title = std::move(title);
  trace.clock = "modelled";
  trace.num_sms = num_sms;
  std::mt19937 random(seed);
  std::vector<std::uint64_t> slot_free(static_cast<std::size_t>(num_sms * slots_per_sm), start);
  std::vector<std::uint64_t> finish(nodes.size(), start);
  std::size_t first_of_previous = 0;
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    const ScheduledNode& node = nodes[n];
    trace.nodes.push_back({.name = node.name, .position = n, .rank = rank, .op = node.op});
    const std::uint32_t tensor = n == 0 ? 0 : trace.tensor_id("out of " + nodes[n - 1].name);
    const std::uint64_t launch = n < 2 ? start : finish[n - 2];  // at most two nodes in flight
    const std::size_t first = trace.records.size();
    for (std::uint32_t tile = 0; tile < node.num_tiles; ++tile) {
      const auto slot = static_cast<std::size_t>(
          std::min_element(slot_free.begin(), slot_free.end()) - slot_free.begin());
      TileRecord record{
          .node = n,
          .rank = rank,
          .work = tile,
          .sm = static_cast<std::uint32_t>(slot) % static_cast<std::uint32_t>(num_sms),
          .begin_ns = std::max(slot_free[slot], launch),
          .wait_ns = 0,
          .ready_ns = 0,
          .signal_ns = 0,
          .end_ns = 0};
      std::uint64_t ready = record.begin_ns + node.prologue_ns;
      if (n > 0) {
        const ScheduledNode& previous = nodes[n - 1];
        const std::uint32_t wanted = tile * previous.num_data_tiles / node.num_tiles;
        record.wait_ns = ready;
        for (std::uint32_t p = 0; p < previous.num_tiles; ++p) {
          const std::uint32_t data_tile = p * previous.num_data_tiles / previous.num_tiles;
          if (!node.waits_for_all && data_tile != wanted) continue;
          ready = std::max(ready, trace.records[first_of_previous + p].signal_ns);
          trace.arrows.push_back({.from_record = static_cast<std::uint32_t>(first_of_previous + p),
                                  .to_record = static_cast<std::uint32_t>(trace.records.size()),
                                  .tensor = tensor,
                                  .tile = data_tile});
        }
        record.ready_ns = ready;
      }
      record.signal_ns = ready + node.body_ns + random() % (node.body_ns / 6 + 1);
      record.end_ns = record.signal_ns + 40;
      slot_free[slot] = record.end_ns;
      finish[n] = std::max(finish[n], record.end_ns);
      trace.records.push_back(record);
    }
    first_of_previous = first;
  }
  return trace;
}

/// One decode step of a small model: 4 + 8 * num_layers nodes.
inline std::vector<ScheduledNode> decode_step(int num_layers) {
  std::vector<ScheduledNode> nodes = {{.name = "embedding",
                                       .op = "embedding",
                                       .num_tiles = 8,
                                       .body_ns = 900,
                                       .num_data_tiles = 8}};
  for (int layer = 0; layer < num_layers; ++layer) {
    const std::string in = "layer " + std::to_string(layer) + " ";
    nodes.push_back({.name = in + "input norm",
                     .op = "rmsnorm",
                     .num_tiles = 8,
                     .prologue_ns = 200,
                     .body_ns = 1400,
                     .num_data_tiles = 8,
                     .waits_for_all = false});
    nodes.push_back({.name = in + "QKV",
                     .op = "gemm",
                     .num_tiles = 96,
                     .prologue_ns = 900,
                     .body_ns = 2600,
                     .num_data_tiles = 32});
    nodes.push_back({.name = in + "RoPE",
                     .op = "rope",
                     .num_tiles = 32,
                     .prologue_ns = 150,
                     .body_ns = 700,
                     .num_data_tiles = 32,
                     .waits_for_all = false});
    nodes.push_back({.name = in + "attention",
                     .op = "attention",
                     .num_tiles = 64,
                     .prologue_ns = 700,
                     .body_ns = 3800,
                     .num_data_tiles = 32,
                     .waits_for_all = false});
    nodes.push_back({.name = in + "output projection",
                     .op = "gemm",
                     .num_tiles = 64,
                     .prologue_ns = 1200,
                     .body_ns = 2200,
                     .num_data_tiles = 8});
    nodes.push_back({.name = in + "post norm",
                     .op = "rmsnorm",
                     .num_tiles = 8,
                     .prologue_ns = 200,
                     .body_ns = 1400,
                     .num_data_tiles = 8,
                     .waits_for_all = false});
    nodes.push_back({.name = in + "gate-up",
                     .op = "gemm",
                     .num_tiles = 224,
                     .prologue_ns = 1200,
                     .body_ns = 4700,
                     .num_data_tiles = 56});
    nodes.push_back({.name = in + "down",
                     .op = "gemm",
                     .num_tiles = 128,
                     .prologue_ns = 1500,
                     .body_ns = 3900,
                     .num_data_tiles = 8});
  }
  nodes.push_back({.name = "final norm",
                   .op = "rmsnorm",
                   .num_tiles = 8,
                   .prologue_ns = 200,
                   .body_ns = 1400,
                   .num_data_tiles = 8,
                   .waits_for_all = false});
  nodes.push_back({.name = "LM head",
                   .op = "gemm",
                   .num_tiles = 396,
                   .prologue_ns = 1500,
                   .body_ns = 6900,
                   .num_data_tiles = 8});
  nodes.push_back({.name = "sampling",
                   .op = "sampling",
                   .num_tiles = 8,
                   .prologue_ns = 100,
                   .body_ns = 2100,
                   .num_data_tiles = 8,
                   .waits_for_all = false});
  return nodes;
}

/// Appends the trace of another rank.
inline void append_rank(Trace& trace, const Trace& other) {
  const auto first = static_cast<std::uint32_t>(trace.records.size());
  trace.nodes.insert(trace.nodes.end(), other.nodes.begin(), other.nodes.end());
  trace.records.insert(trace.records.end(), other.records.begin(), other.records.end());
  for (TraceArrow arrow : other.arrows) {
    arrow.from_record += first;
    arrow.to_record += first;
    arrow.tensor = trace.tensor_id(other.tensors[arrow.tensor]);
    trace.arrows.push_back(arrow);
  }
}

}  // namespace tileweave::testing
