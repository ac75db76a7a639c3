// A plan of two tile kernels with another library's copy between them.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/runtime/devices.h"
#include "tileweave/runtime/async_stream.h"

namespace tileweave {

struct CopyArgs {
  const std::uint32_t* from;
  std::uint32_t* to;
  std::size_t count;
};

inline const CopyArgs& copy_args(const std::byte* bytes) {
  return *reinterpret_cast<const CopyArgs*>(bytes);
}

inline NodeSpec copy_node(TensorId from, TensorId to, std::size_t count) {
  return {.name = "copy",
          .kernel = "copy",
          .operands = {{.tensor = from}, {.tensor = to, .access = Access::kWrite}},
          .resources = {},
          .cost = {},
          .make_args =
              [count](const Addresses& at) {
                return to_bytes(CopyArgs{.from = static_cast<const std::uint32_t*>(at.operands[0]),
                                         .to = static_cast<std::uint32_t*>(at.operands[1]),
                                         .count = count});
              },
          .integrated = false};
}

/// first -> copy -> second, whose result is that of first -> second.
struct CopiedNodes {
  TwoNodes two;
  TensorId copied = kNoTensor;

  explicit CopiedNodes(std::uint32_t max_delay_ns = 0, std::int32_t num_streams = 2)
      : two(num_streams) {
    two.first.max_delay_ns = two.second.max_delay_ns = max_delay_ns;
    MixPlan& mix = two.mix;
    copied = add_value(mix, {.name = "copied", .shape = {8, 4}, .tiles = {2, 4}});
    add_mix(mix, two.first);
    mix.plan.add(copy_node(two.y, copied, 32));
    two.second.inputs[0].tensor = copied;
    add_mix(mix, two.second);
  }
};

inline std::vector<std::uint32_t> result_without_copy() {
  TwoNodes two;
  MixOracle oracle(two.done());
  oracle.run();
  return oracle.values(two.z);
}

/// `calls` counts what the copy's `prepare` was called for.
inline void expect_right_in_every_mode(Device& device, std::uint32_t max_delay_ns,
                                       const int& calls) {
  const std::vector<std::uint32_t> expected = result_without_copy();
  for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
    for (const Submit submit : {Submit::kEager, Submit::kGraph}) {
      for (const std::int32_t streams : {1, 2, 3}) {
        SCOPED_TRACE(std::string(mode == Mode::kSerial ? "serial" : "overlap") +
                     (submit == Submit::kEager ? ", eager, " : ", graph, ") +
                     std::to_string(streams) + " streams");
        const CopiedNodes nodes(max_delay_ns, streams);
        const int before = calls;
        Program program(device, nodes.two.mix.plan, {.mode = mode, .submit = submit});
        EXPECT_EQ(calls, before + 1) << "once, when the plan is loaded";
        upload(program, nodes.two.mix);
        for (int run = 0; run < 20; ++run) program.run();
        program.synchronize();
        EXPECT_EQ(calls, before + 1);
        EXPECT_EQ(program.read<std::uint32_t>(nodes.two.z), expected);
      }
    }
  }
}

}  // namespace tileweave
