// Presets: models by name, in the shapes of their published configurations, with random weights.
//
// For measuring without files. Weights are made on the device, the same for every device and form:
// matrices uniform with variance 1 / K, so that activations stay finite, norms near 1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tileweave/models/checkpoint/config.h"
#include "tileweave/models/model_weights.h"

namespace tileweave {

/// "llama-3.2-1b", ...
std::vector<std::string> preset_names();
/// Nothing for a name that is no preset.
std::optional<ModelConfig> preset_config(const std::string& name);

/// Throws Error when the device is out of memory.
ModelWeights random_weights(Device& device, const ModelConfig& config, std::uint64_t seed,
                            Granularity granularity, const LoadProgress& progress = nullptr);
/// The same numbers in another form than the device's own: for products that are not ours.
ModelWeights random_weights(Device& device, const ModelConfig& config, std::uint64_t seed,
                            const WeightForm& form, const LoadProgress& progress = nullptr);

}  // namespace tileweave
