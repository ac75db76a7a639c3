#include "tileweave/models/checkpoint/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "tileweave/core/error.h"
#include "tileweave/core/format.h"
#include "tileweave/models/json/json_file.h"

namespace tileweave {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr std::string_view kExtension = ".safetensors";

// Names of the weight files in the directory, sorted; hidden files are none of ours.
std::vector<std::string> safetensors_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator each(directory, error), end; !error && each != end;
       each.increment(error)) {
    std::string name = each->path().filename().string();
    if (name.ends_with(kExtension) && name[0] != '.') names.push_back(std::move(name));
  }
  if (error) throw Error("open model " + directory, "a readable directory", error.message());
  std::sort(names.begin(), names.end());
  return names;
}

// "model-00001-of-00002.safetensors": a file that makes sense only together with others.
bool is_shard_name(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  name.remove_suffix(kExtension.size());
  const auto drop_digits = [&] {
    const std::size_t before = name.size();
    while (!name.empty() && is_digit(name.back())) name.remove_suffix(1);
    return name.size() < before;
  };
  if (!drop_digits() || !name.ends_with("-of-")) return false;
  name.remove_suffix(4);
  return drop_digits();
}

// Whether a file that the index does not list looks like part of the weights all the same. What a
// user leaves beside them, such as logits, does not.
bool is_stray(std::string_view name) {
  return name.starts_with("model") || is_shard_name(name);
}

// Which shard holds which tensor, after a check of the names.
std::map<std::string, std::string> read_weight_map(const JsonFile& index) {
  std::map<std::string, std::string> shard_of;
  const JsonNode weight_map = index.root().at("weight_map");
  for (const auto& [name, unused] : weight_map.require_object().json().items()) {
    const JsonNode entry = weight_map.at(name);
    const std::string& shard = entry.string();
    const bool is_plain = shard.ends_with(kExtension) && shard.size() > kExtension.size() &&
                          shard.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
    if (!is_plain) entry.refuse("the name of a *.safetensors file in the same directory");
    shard_of[name] = shard;
  }
  if (shard_of.empty()) weight_map.refuse("an object that names at least one tensor");
  return shard_of;
}

}  // namespace

Checkpoint Checkpoint::open(const std::string& directory) {
  const std::string operation = "open model " + directory;
  Checkpoint checkpoint(directory);
  const std::vector<std::string> present = safetensors_in(directory);
  const fs::path folder(directory);
  std::error_code ignored;
  if (fs::exists(folder / kSingleFile, ignored)) {
    const auto shard = std::find_if(present.begin(), present.end(),
                                    [](const std::string& name) { return is_shard_name(name); });
    if (shard != present.end()) {
      throw Error(operation, "one set of weights",
                  std::string(kSingleFile) + " and the stray shard " + in_quotes(*shard));
    }
    checkpoint.add(Safetensors::open((folder / kSingleFile).string()));
  } else if (fs::exists(folder / kIndexFile, ignored)) {
    checkpoint.open_shards();
  } else if (present.size() == 1 && !is_shard_name(present[0])) {
    checkpoint.add(Safetensors::open((folder / present[0]).string()));
  } else if (present.empty()) {
    throw Error(operation, "weights in model.safetensors or in shards with their index",
                "no *.safetensors file");
  } else {
    throw Error(operation, std::string(kIndexFile) + ", which says what each shard holds",
                in_quotes(present[0]) + (present.size() == 1 ? "" : " and others") + " without it");
  }
  return checkpoint;
}

void Checkpoint::open_shards() {
  const fs::path folder(directory_);
  const JsonFile index = JsonFile::read((folder / kIndexFile).string());
  const std::map<std::string, std::string> shard_of = read_weight_map(index);
  const std::string operation = "read " + index.name();

  std::map<std::string, std::string> shards;  // and a tensor of each, for the sentences
  for (const auto& [tensor, shard] : shard_of) shards.emplace(shard, tensor);
  for (const std::string& name : safetensors_in(directory_)) {
    if (!shards.contains(name) && is_stray(name)) {
      throw Error(operation, "every shard of the directory in weight_map",
                  "the stray shard " + in_quotes(name));
    }
  }
  for (const auto& [shard, tensor] : shards) {
    const fs::path path = folder / shard;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
      throw Error(operation, "the shard " + in_quotes(shard) + " with tensor " + in_quotes(tensor),
                  "no such file in the directory");
    }
    Safetensors file = Safetensors::open(path.string());
    for (const StoredTensor& stored : file.tensors()) {
      const auto entry = shard_of.find(stored.name);
      if (entry == shard_of.end()) {
        throw Error(operation, "every tensor of " + in_quotes(shard) + " in weight_map",
                    in_quotes(stored.name) + ", which is not");
      }
      if (entry->second != shard) {
        throw Error(operation,
                    "tensor " + in_quotes(stored.name) + " in " + in_quotes(entry->second),
                    "one in " + in_quotes(shard));
      }
    }
    add(std::move(file));
  }
  for (const auto& [tensor, shard] : shard_of) {
    if (find(tensor) == nullptr) {
      throw Error(operation, "tensor " + in_quotes(tensor) + " in " + in_quotes(shard),
                  "no such tensor in it");
    }
  }
}

void Checkpoint::add(Safetensors file) {
  for (const StoredTensor& tensor : file.tensors()) tensors_.emplace(tensor.name, &tensor);
  files_.push_back(std::move(file));
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto entry = tensors_.find(name);
  return entry == tensors_.end() ? nullptr : entry->second;
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  names.reserve(tensors_.size());
  for (const auto& [name, tensor] : tensors_) names.emplace_back(name);
  return names;
}

std::uint64_t Checkpoint::total_bytes() const {
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : tensors_) total += tensor->bytes.size();
  return total;
}

}  // namespace tileweave
