// The tiny models of tests/models/data with what transformers said about them; for tests only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tileweave/models/decoder.h"

namespace tileweave {

/// Names of the folders.
std::vector<std::string> tiny_model_names();

struct GoldenReply {
  std::vector<std::int32_t> prompt, ids;
  std::int64_t stops_after = -1;  // -1: no eos among `ids`
};

struct Golden {
  std::vector<std::int32_t> ids;  // 65
  std::vector<float> logits_f32, logits_bf16, logits_f16;
  std::vector<GoldenReply> greedy;
};

/// Throws Error when the data is not there.
Golden read_golden(const std::string& name);

struct TinyModel {
  ModelConfig config;
  GenerationConfig generation;
  std::unique_ptr<Device> device;
  std::unique_ptr<Decoder> decoder;
};

struct TinyOptions {
  DType dtype = DType::kF32;  // weights are rounded to it
  CpuOptions device = {};
  DecoderOptions decoder = {};
};

TinyModel open_tiny_model(const std::string& name, const TinyOptions& options = {});

/// Logits of every position, `chunk` tokens a step.
std::vector<float> logits_of(Decoder& decoder, std::span<const std::int32_t> ids,
                             std::size_t chunk);

/// Largest ||a - b||_2 / ||b||_2 over rows of `columns`.
double largest_row_error(std::span<const float> a, std::span<const float> b, std::size_t columns);

}  // namespace tileweave
