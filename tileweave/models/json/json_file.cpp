#include "tileweave/models/json/json_file.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tileweave/core/error.h"
#include "tileweave/core/file_map.h"
#include "tileweave/core/format.h"

namespace tileweave {
namespace {

using nlohmann::json;

// Builds the document while it is parsed, because only then can a second key be told from the
// first. Returning false ends the parsing.
class Builder final : public json::json_sax_t {
 public:
  Builder(std::string_view text, json& root) : text_(text), root_(root) {}

  const std::string& problem() const { return problem_; }

  bool null() override { return put(json(nullptr)); }
  bool boolean(bool value) override { return put(json(value)); }
  bool number_integer(number_integer_t value) override { return put(json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return put(json(value)); }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return put(json(value));
  }
  bool string(string_t& value) override { return put(json(std::move(value))); }
  bool binary(binary_t& /*value*/) override { return fail("binary data"); }
  bool start_object(std::size_t /*size*/) override { return open(json::object()); }
  bool start_array(std::size_t /*size*/) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    const auto [place, is_new] =
        open_.back()->get_ref<json::object_t&>().try_emplace(std::move(name));
    if (!is_new) return fail("the key " + in_quotes(place->first) + " twice in one object");
    member_ = &place->second;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    // Id 406: a number beyond the range of double; the parser reports it with the rest.
    const std::string what = error.id == 406 ? "a number beyond the range of double" : "an error";
    return fail(what + place(position == 0 ? 0 : position - 1));
  }

 private:
  bool put(json value) {
    slot() = std::move(value);
    return true;
  }
  bool open(json value) {
    if (static_cast<int>(open_.size()) == kMaxJsonDepth) {
      return fail("nesting deeper than " + std::to_string(kMaxJsonDepth));
    }
    json& place = slot();
    place = std::move(value);
    open_.push_back(&place);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  // Where the value that begins now has to go. Pointers into open_ stay valid: an array grows only
  // while none of its elements is open.
  json& slot() {
    if (open_.empty()) return root_;
    if (open_.back()->is_object()) return *member_;
    return open_.back()->get_ref<json::array_t&>().emplace_back();
  }
  std::string place(std::size_t position) const {
    const std::string_view before = text_.substr(0, position);
    if (before.size() == text_.size()) return " where the text ends";
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t begin = before.rfind('\n');
    const std::size_t column = before.size() - (begin == std::string_view::npos ? 0 : begin + 1);
    return " at line " + std::to_string(line) + ", column " + std::to_string(column + 1);
  }
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  std::string_view text_;
  json& root_;
  json* member_ = nullptr;
  std::vector<json*> open_;
  std::string problem_;
};

// A key as part of a path: as it is, or in quotes when it is long or could not be printed.
std::string path_part(std::string_view key) {
  const bool is_plain =
      !key.empty() && key.size() <= 80 &&
      std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return is_plain ? std::string(key) : in_quotes(key);
}

std::string number_text(double value) {
  return json(value).dump();
}

}  // namespace

JsonFile JsonFile::parse(std::string_view text, std::string name) {
  const std::string operation = "read " + name;
  const std::size_t valid = valid_utf8_prefix(text);
  if (valid != text.size()) {
    throw Error(operation, "UTF-8 text",
                in_quotes(text.substr(valid, 1)) + " at byte " + std::to_string(valid));
  }
  const auto document = std::make_shared<JsonDocument>();
  document->file = std::move(name);
  Builder builder(text, document->value);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    throw Error(operation, "valid JSON", builder.problem());
  }
  return JsonFile(document);
}

JsonFile JsonFile::read(const std::string& path) {
  const FileMap file = FileMap::open(path);
  require_no_git_lfs_pointer(file);
  return parse(file.text(), path);
}

const JsonNode& JsonNode::require_object() const {
  if (!value_->is_object()) refuse("an object");
  return *this;
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  const auto& members = require_object().value_->get_ref<const json::object_t&>();
  const auto member = members.find(key);
  if (member == members.end() || member->second.is_null()) return std::nullopt;
  std::string path = path_;
  if (!path.empty()) path += '.';
  path += path_part(key);
  return JsonNode(document_, &member->second, std::move(path));
}

JsonNode JsonNode::at(std::string_view key) const {
  std::optional<JsonNode> member = find(key);
  if (!member) {
    throw Error("read " + file(),
                "the key " + in_quotes(key) + (path_.empty() ? "" : " in " + path_),
                value_->contains(key) ? "null" : "none");
  }
  return *std::move(member);
}

std::size_t JsonNode::length() const {
  if (!value_->is_array()) refuse("an array");
  return value_->size();
}

JsonNode JsonNode::element(std::size_t index) const {
  if (index >= length()) refuse("an array of more than " + std::to_string(index) + " elements");
  return {document_, &(*value_)[index], path_ + '[' + std::to_string(index) + ']'};
}

std::int64_t JsonNode::integer(std::int64_t low, std::int64_t high) const {
  // A number above 2^63 is stored unsigned; it is never below `high`.
  const bool is_signed_64 =
      value_->is_number_integer() &&
      (!value_->is_number_unsigned() || std::in_range<std::int64_t>(value_->get<std::uint64_t>()));
  if (is_signed_64) {
    const auto value = value_->get<std::int64_t>();
    if (low <= value && value <= high) return value;
  }
  refuse("an integer from " + std::to_string(low) + " to " + std::to_string(high));
}

double JsonNode::number(double low, double high) const {
  if (value_->is_number()) {
    const auto value = value_->get<double>();
    if (low <= value && value <= high) return value;
  }
  refuse("a number from " + number_text(low) + " to " + number_text(high));
}

bool JsonNode::boolean() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

const std::string& JsonNode::string() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get_ref<const std::string&>();
}

void JsonNode::refuse(const std::string& expected) const {
  refuse(expected, describe(*value_));
}

void JsonNode::refuse(const std::string& expected, const std::string& got) const {
  throw Error("read " + file(), (path_.empty() ? "the whole" : path_) + " to be " + expected, got);
}

std::string describe(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case json::value_t::string:
      return "the string " + in_quotes(value.get_ref<const std::string&>());
    case json::value_t::array:
      return "an array of " + std::to_string(value.size()) +
             (value.size() == 1 ? " element" : " elements");
    case json::value_t::object:
      return "an object";
    default:
      return "the number " + value.dump();
  }
}

}  // namespace tileweave
