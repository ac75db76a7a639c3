// Nodes that only benchmarks have: a kernel that reads and does nothing else, what stands for the
// operators around attention, and what stands for attention itself.
//
// Their kernels exist on a GPU alone: add_bench_kernels throws Error in builds without CUDA. The
// makers are plain and run anywhere.
#pragma once

#include <cstdint>
#include <string>

#include "tileweave/plan/plan.h"
#include "tileweave/runtime/device.h"

namespace tileweave::cli {

void add_bench_kernels(Device& device);

/// Reads all `bytes` of the constant `from`, what any other node that reads these bytes is held
/// against. `never`: four bytes that are as good as never written.
NodeSpec bare_read_node(const std::string& name, TensorId from, std::int64_t bytes,
                        std::int64_t blocks, void* never);

/// to = base + a little of `from`, by one block: a dependency and next to nothing else. `to`,
/// `base` (1, columns) f32; `from` the same, or the bf16 result of attention, (1, no more columns).
NodeSpec next_row_node(const TensorTable& tensors, const std::string& name, TensorId from,
                       TensorId base, TensorId to);

/// Every node of attention becomes a copy of its query to its result, one block a row; what it
/// would have written to the cache is not. Returns how many these are. For steps of a GPU, whose
/// results mean nothing then; the time that is missing is that of attention.
std::int64_t replace_attention(Plan& plan);

}  // namespace tileweave::cli
