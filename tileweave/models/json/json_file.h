// JSON files of a model directory: parsed strictly, then read by getters that name file and key.
//
// JsonFile parses (and refuses, in one sentence with the place: what is no JSON, invalid UTF-8, a
// key that stands twice in one object, nesting deeper than kMaxJsonDepth, a Git LFS pointer).
// JsonNode is a cursor into it: it knows its file and its path ("rope_scaling.factor"), and every
// getter throws Error "read FILE: KEY to be an integer ..., got the string "x"". A key that is
// missing and a key that is null are the same to find(). Nodes are cheap handles, valid as long as
// any JsonFile that shares the document; for bulk data (vocabularies) read json() itself and use
// refuse() of the node above.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace tileweave {

inline constexpr int kMaxJsonDepth = 128;

struct JsonDocument {
  std::string file;  // as named in errors
  nlohmann::json value;
};

class JsonNode {
 public:
  const nlohmann::json& json() const { return *value_; }
  const std::string& file() const { return document_->file; }
  /// "rope_scaling.factor", "layer_types[3]"; empty for the whole file.
  const std::string& path() const { return path_; }

  bool is_null() const { return value_->is_null(); }
  bool is_string() const { return value_->is_string(); }
  bool is_boolean() const { return value_->is_boolean(); }
  bool is_integer() const { return value_->is_number_integer(); }
  bool is_array() const { return value_->is_array(); }
  bool is_object() const { return value_->is_object(); }

  // Objects.
  /// The member, or nothing when it is missing or null.
  std::optional<JsonNode> find(std::string_view key) const;
  /// The member, which must be there and not be null.
  JsonNode at(std::string_view key) const;
  /// Throws unless this is an object.
  const JsonNode& require_object() const;

  // Arrays.
  /// Number of elements; throws unless this is an array.
  std::size_t length() const;
  JsonNode element(std::size_t index) const;

  // Values; each throws when the type or the range is another.
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  /// An integer or a fraction, finite, in [low, high].
  double number(double low, double high) const;
  bool boolean() const;
  const std::string& string() const;

  /// Throws Error("read FILE", "PATH to be EXPECTED", what this value is, or `got`).
  [[noreturn]] void refuse(const std::string& expected) const;
  [[noreturn]] void refuse(const std::string& expected, const std::string& got) const;

 private:
  friend class JsonFile;
  JsonNode(const JsonDocument* document, const nlohmann::json* value, std::string path)
      : document_(document), value_(value), path_(std::move(path)) {}

  const JsonDocument* document_;
  const nlohmann::json* value_;
  std::string path_;
};

class JsonFile {
 public:
  /// Throws Error also when the file cannot be read.
  static JsonFile read(const std::string& path);
  /// `name` stands for the file in errors.
  static JsonFile parse(std::string_view text, std::string name);

  const std::string& name() const { return document_->file; }
  const nlohmann::json& json() const { return document_->value; }
  JsonNode root() const { return {document_.get(), &document_->value, ""}; }

 private:
  explicit JsonFile(std::shared_ptr<const JsonDocument> document)
      : document_(std::move(document)) {}

  std::shared_ptr<const JsonDocument> document_;
};

/// "the number 1.5", "the string "x"", "an array of 3 elements": for error sentences.
std::string describe(const nlohmann::json& value);

}  // namespace tileweave
