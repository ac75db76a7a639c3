#include "tileweave/runtime/tracing.h"

#include <algorithm>
#include <utility>

namespace tileweave {
namespace {

using WorkKey = std::pair<NodeId, std::int64_t>;

/// Records of one (node, work), oldest run first.
using RecordIndex = std::map<WorkKey, std::vector<std::size_t>>;

RecordIndex index_records(const std::vector<TileRecord>& records) {
  RecordIndex index;
  for (std::size_t r = 0; r < records.size(); ++r) {
    index[{static_cast<NodeId>(records[r].node), records[r].work}].push_back(r);
  }
  for (auto& [key, of_work] : index) {
    std::sort(of_work.begin(), of_work.end(), [&](std::size_t a, std::size_t b) {
      return records[a].begin_ns < records[b].begin_ns;
    });
  }
  return index;
}

/// Works that signal each data tile of a tensor, over all its producers.
std::map<std::int64_t, std::vector<WorkKey>> signallers(
    TensorId id, const std::map<NodeId, const NodeSpec*>& nodes, const TensorTable& tensors) {
  std::map<std::int64_t, std::vector<WorkKey>> works;
  const Tensor& tensor = tensors[id];
  for (const auto& [node_id, spec] : nodes) {
    for (const OperandSpec& operand : spec->operands) {
      if (operand.tensor != id || operand.access != Access::kWrite || operand.sync_slot < 0) {
        continue;
      }
      const TileSet kernel = kernel_tiles_of(operand, tensor);
      const TileMap map = map_of(operand, tensor, spec->args);
      for (std::int64_t w = 0; w < spec->num_works; ++w) {
        for (const std::int64_t k : kernel_tiles_of_work(operand, tensor, w)) {
          for (const std::int64_t t : map.tiles_of(kernel.coord(k), spec->args)) {
            works[t].push_back({node_id, w});
          }
        }
      }
    }
  }
  return works;
}

}  // namespace

Trace make_trace(const TraceRequest& request, std::vector<TileRecord> records,
                 const std::map<NodeId, const NodeSpec*>& nodes, const TensorTable& tensors) {
  Trace trace;
  trace.title = request.title;
  trace.clock = request.clock;
  trace.time_unit = request.time_unit;
  trace.num_sms = request.num_sms;
  trace.sm_scope = SmScope::kShared;
  if (request.dropped > 0) trace.dropped.push_back(request.dropped);
  for (const auto& [id, spec] : nodes) {
    trace.nodes.push_back({spec->name, static_cast<std::uint32_t>(id),
                           static_cast<std::uint32_t>(spec->rank), spec->kernel});
  }
  trace.records = std::move(records);

  const RecordIndex index = index_records(trace.records);
  std::map<TensorId, std::map<std::int64_t, std::vector<WorkKey>>> producers;
  for (const auto& [id, spec] : nodes) {
    for (const OperandSpec& operand : spec->operands) {
      const Tensor& tensor = tensors[operand.tensor];
      if (operand.access != Access::kRead || operand.sync_slot < 0 || !tensor.tiled()) continue;
      auto [found, is_new] = producers.try_emplace(operand.tensor);
      if (is_new) found->second = signallers(operand.tensor, nodes, tensors);
      const TileSet kernel = kernel_tiles_of(operand, tensor);
      const TileMap map = map_of(operand, tensor, spec->args);
      const std::uint32_t tensor_id = trace.tensor_id(tensor.spec.name);
      for (std::int64_t w = 0; w < spec->num_works; ++w) {
        const auto readers = index.find({id, w});
        if (readers == index.end()) continue;
        for (const std::int64_t k : kernel_tiles_of_work(operand, tensor, w)) {
          for (const std::int64_t t : map.tiles_of(kernel.coord(k), spec->args)) {
            for (const WorkKey& key : found->second[t]) {
              if (request.run_of && request.run_of(key.first) != request.run_of(id)) continue;
              const auto writers = index.find(key);
              if (writers == index.end()) continue;
              const std::size_t runs = std::min(readers->second.size(), writers->second.size());
              for (std::size_t run = 0; run < runs; ++run) {
                trace.add_arrow(writers->second[run], readers->second[run], tensor_id,
                                static_cast<std::uint64_t>(t));
              }
            }
          }
        }
      }
    }
  }
  return trace;
}

}  // namespace tileweave
