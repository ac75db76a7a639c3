// Safetensors headers made wrong by hand, each with a part of the sentence that refuses it.
#include <gtest/gtest.h>

#include "tests/models/checkpoint/temporary_folder.h"
#include "tileweave/models/checkpoint/safetensors.h"

namespace tileweave {
namespace {

struct BadFile {
  const char* name;
  std::string bytes;
  const char* part;  // of the sentence
};

// Lets gtest print the name instead of the bytes.
void PrintTo(const BadFile& bad, std::ostream* out) {
  *out << bad.name;
}

// A header over `num_bytes` bytes of tensors.
std::string with_header(const std::string& header, std::size_t num_bytes = 8) {
  return testing::safetensors_bytes(header, num_bytes);
}

// One tensor `a`, given what follows its name.
std::string with_tensor(const std::string& entry, std::size_t num_bytes = 8) {
  return with_header("{\"a\":" + entry + "}", num_bytes);
}

// Tensors `a` and `b`, each of one axis of bytes, at the given offsets.
std::string with_offsets(const std::string& a, int size_a, const std::string& b, int size_b,
                         std::size_t num_bytes = 8) {
  const auto entry = [](const std::string& name, const std::string& offsets, int size) {
    return "\"" + name + R"(":{"dtype":"U8","shape":[)" + std::to_string(size) +
           "],\"data_offsets\":" + offsets + "}";
  };
  return with_header("{" + entry("a", a, size_a) + "," + entry("b", b, size_b) + "}", num_bytes);
}

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>((length >> (8 * i)) & 0xff);
  return bytes + rest;
}

std::vector<BadFile> bad_files() {
  return {
      {"Empty", "", "a file of 0 bytes"},
      {"SevenBytes", "1234567", "a file of 7 bytes"},
      {"GitLfsPointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
       "a Git LFS pointer"},
      {"HeaderPastTheEnd", with_length(100, "{}"), "a file cut off after 10 bytes"},
      {"HeaderLengthHuge", with_length(100'000'001, "{}"), "at most 100000000 bytes"},
      {"HeaderLengthOverflows", with_length(~std::uint64_t{0}, "{}"), "at most 100000000 bytes"},
      {"HeaderOfNoBytes", with_header("", 0), "begins with {"},
      {"HeaderIsAnArray", with_header("[]", 0), "begins with {"},
      {"HeaderBeginsWithSpace", with_header(" {}", 0), "begins with {"},
      {"HeaderIsNoJson", with_header("{\"a\":}", 0), "valid JSON"},
      {"HeaderIsCutOff", with_header("{\"a\":{", 0), "valid JSON"},
      {"HeaderHasMoreAfterIt", with_header("{} x", 0), "valid JSON"},
      {"HeaderIsNotUtf8", with_header("{\"\xff\":{}}", 0), "UTF-8"},
      {"HeaderIsNestedDeeply", with_header("{\"a\":" + std::string(100'000, '['), 0),
       "nesting deeper"},
      {"ANameTwice",
       with_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                   R"("a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})"),
       "the key \"a\" twice"},
      {"MetadataIsNoObject", with_header(R"({"__metadata__":1})", 0),
       "__metadata__ to be an object"},
      {"MetadataIsNoText", with_header(R"({"__metadata__":{"k":1}})", 0),
       "__metadata__.k to be a string"},
      {"TensorIsNoObject", with_tensor("[]"), "a to be an object"},
      {"TensorIsNull", with_tensor("null"), "the key \"a\""},
      {"DtypeMissing", with_tensor(R"({"shape":[8],"data_offsets":[0,8]})"), "\"dtype\" in a"},
      {"DtypeIsANumber", with_tensor(R"({"dtype":8,"shape":[8],"data_offsets":[0,8]})"),
       "a.dtype to be a string"},
      {"DtypeUnknown", with_tensor(R"({"dtype":"F12","shape":[8],"data_offsets":[0,8]})"),
       "a.dtype to be a dtype of the safetensors format, got the string \"F12\""},
      {"ShapeMissing", with_tensor(R"({"dtype":"U8","data_offsets":[0,8]})"), "\"shape\" in a"},
      {"ShapeIsANumber", with_tensor(R"({"dtype":"U8","shape":8,"data_offsets":[0,8]})"),
       "a.shape to be an array"},
      {"ShapeNegative", with_tensor(R"({"dtype":"U8","shape":[-8],"data_offsets":[0,8]})"),
       "a.shape[0] to be an integer from 0"},
      {"ShapeFraction", with_tensor(R"({"dtype":"U8","shape":[8.0],"data_offsets":[0,8]})"),
       "a.shape[0] to be an integer from 0"},
      {"ShapeText", with_tensor(R"({"dtype":"U8","shape":["8"],"data_offsets":[0,8]})"),
       "a.shape[0] to be an integer from 0"},
      {"ShapeAbove63Bits",
       with_tensor(R"({"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,8]})"),
       "a.shape[0] to be an integer from 0"},
      {"ShapeOverflows",
       with_tensor(R"({"dtype":"U8","shape":[4294967296,4294967296,16],"data_offsets":[0,8]})"),
       "a.shape to be a shape of a whole number of bytes below 2^60"},
      {"ShapeOfHalfAByte", with_tensor(R"({"dtype":"F4","shape":[15],"data_offsets":[0,8]})"),
       "a shape of a whole number of bytes"},
      {"ShapeTooLargeForItsBytes",
       with_tensor(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
       "the 12 bytes of shape (3) and dtype F32, got 8 bytes"},
      {"ShapeTooSmallForItsBytes",
       with_tensor(R"({"dtype":"BF16","shape":[1,3],"data_offsets":[0,8]})"),
       "the 6 bytes of shape (1, 3) and dtype BF16, got 8 bytes"},
      {"OffsetsMissing", with_tensor(R"({"dtype":"U8","shape":[8]})"), "\"data_offsets\" in a"},
      {"OffsetsOfOneNumber", with_tensor(R"({"dtype":"U8","shape":[8],"data_offsets":[8]})"),
       "a.data_offsets to be a begin and an end"},
      {"OffsetsOfThreeNumbers", with_tensor(R"({"dtype":"U8","shape":[8],"data_offsets":[0,8,8]})"),
       "a.data_offsets to be a begin and an end"},
      {"OffsetsNegative", with_tensor(R"({"dtype":"U8","shape":[8],"data_offsets":[-8,0]})"),
       "a.data_offsets[0] to be an integer from 0"},
      {"OffsetsRunBackwards", with_offsets("[4,0]", 4, "[4,8]", 4),
       "a.data_offsets to be a begin and a later end, got [4, 0]"},
      {"OffsetsPastTheEnd", with_offsets("[0,4]", 4, "[4,9]", 5),
       "b.data_offsets to be within the file's 8 bytes of tensors, got [4, 9]"},
      {"OffsetsOverlap", with_offsets("[0,5]", 5, "[4,8]", 4),
       "\"b\" from byte 4, before \"a\" ends at 5"},
      {"OffsetsTheSame", with_offsets("[0,8]", 8, "[0,8]", 8), "tensors that do not overlap"},
      {"HoleAtTheBegin", with_offsets("[1,4]", 3, "[4,8]", 4),
       "1 byte before \"a\" that belong to none"},
      {"HoleInTheMiddle", with_offsets("[0,3]", 3, "[5,8]", 3),
       "2 bytes before \"b\" that belong to none"},
      {"HoleAtTheEnd", with_offsets("[0,4]", 4, "[4,6]", 2),
       "2 bytes after the last that belong to none"},
      {"BytesWithoutTensors", with_header("{}", 3), "3 bytes after the last"},
  };
}

class BadSafetensors : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadSafetensors, AreRefusedWithASentence) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.write("bad.safetensors", GetParam().bytes);
  const std::string sentence = testing::refusal_of([&] { Safetensors::open(path); });
  testing::expect_sentence(sentence);
  testing::expect_part(sentence, path);
  testing::expect_part(sentence, GetParam().part);
}

INSTANTIATE_TEST_SUITE_P(Table, BadSafetensors, ::testing::ValuesIn(bad_files()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace tileweave
