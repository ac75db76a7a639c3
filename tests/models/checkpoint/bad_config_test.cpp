// Values of config.json and generation_config.json that make no sense, or that the library cannot
// compute, each with a part of the sentence that refuses it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/models/checkpoint/config_text.h"
#include "tests/models/checkpoint/temporary_folder.h"

namespace tileweave {
namespace {

struct BadValue {
  const char* name;
  const char* changes;
  const char* part;  // of the sentence
};

void PrintTo(const BadValue& bad, std::ostream* out) {
  *out << bad.name;
}

class BadLlamaConfig : public ::testing::TestWithParam<BadValue> {};
class BadQwen3Config : public ::testing::TestWithParam<BadValue> {};
class BadGenerationConfig : public ::testing::TestWithParam<BadValue> {};

void expect_refusal(const std::string& file, const std::string& sentence, const char* part) {
  testing::expect_sentence(sentence);
  testing::expect_part(sentence, "read " + file);
  testing::expect_part(sentence, part);
}

TEST_P(BadLlamaConfig, IsRefusedWithASentence) {
  const std::string text = testing::changed(testing::llama_json(), GetParam().changes);
  expect_refusal("config.json", testing::refusal_of([&] { testing::config_of(text); }),
                 GetParam().part);
}

TEST_P(BadQwen3Config, IsRefusedWithASentence) {
  const std::string text = testing::changed(testing::qwen3_json(), GetParam().changes);
  expect_refusal("config.json", testing::refusal_of([&] { testing::config_of(text); }),
                 GetParam().part);
}

TEST_P(BadGenerationConfig, IsRefusedWithASentence) {
  const auto parse = [&] {
    parse_generation_config(JsonFile::parse(GetParam().changes, "generation_config.json"), {});
  };
  expect_refusal("generation_config.json", testing::refusal_of(parse), GetParam().part);
}

const BadValue kLlama[] = {
    {"NoArchitecture", R"({"architectures": "REMOVE", "model_type": "REMOVE"})",
     "architectures or model_type"},
    {"UnknownArchitecture", R"({"architectures": ["MambaForCausalLM"]})",
     R"(architectures[0] to be LlamaForCausalLM or Qwen3ForCausalLM, got the string "Mamba)"},
    {"ArchitecturesIsText", R"({"architectures": "LlamaForCausalLM"})",
     "architectures to be an array"},
    {"ArchitectureIsANumber", R"({"architectures": [1]})", "architectures[0] to be a string"},
    {"UnknownModelType", R"({"model_type": "mistral"})", "model_type to be llama or qwen3"},
    {"UnknownModelTypeAlone", R"({"architectures": [], "model_type": "gpt2"})",
     R"(got the string "gpt2")"},
    {"ModelTypeOfAnother", R"({"model_type": "qwen3"})",
     "model_type to be the type of architecture LlamaForCausalLM"},
    {"VocabularyMissing", R"({"vocab_size": "REMOVE"})", R"(the key "vocab_size", got none)"},
    {"VocabularyNull", R"({"vocab_size": null})", R"(the key "vocab_size", got null)"},
    {"VocabularyZero", R"({"vocab_size": 0})", "vocab_size to be an integer from 1"},
    {"VocabularyNegative", R"({"vocab_size": -5})", "vocab_size to be an integer from 1"},
    {"VocabularyFraction", R"({"vocab_size": 128.5})", "vocab_size to be an integer from 1"},
    {"VocabularyWholeFraction", R"({"vocab_size": 128.0})", "got the number 128.0"},
    {"VocabularyText", R"({"vocab_size": "128"})", R"(got the string "128")"},
    {"VocabularyTrue", R"({"vocab_size": true})", "got true"},
    {"VocabularyAbove32Bits", R"({"vocab_size": 4294967296})", "got the number 4294967296"},
    {"VocabularyAbove64Bits", R"({"vocab_size": 99999999999999999999})", "vocab_size to be"},
    {"HiddenZero", R"({"hidden_size": 0})", "hidden_size to be an integer from 1"},
    {"HiddenHuge", R"({"hidden_size": 2147483647})", "hidden_size to be an integer from 1"},
    {"HiddenMissing", R"({"hidden_size": "REMOVE"})", R"(the key "hidden_size")"},
    {"IntermediateNegative", R"({"intermediate_size": -1})", "intermediate_size to be"},
    {"IntermediateList", R"({"intermediate_size": [1]})", "got an array of 1 element"},
    {"LayersZero", R"({"num_hidden_layers": 0})", "num_hidden_layers to be"},
    {"LayersHuge", R"({"num_hidden_layers": 1000000000})", "num_hidden_layers to be"},
    {"HeadsZero", R"({"num_attention_heads": 0})", "num_attention_heads to be"},
    {"HeadsMissing", R"({"num_attention_heads": "REMOVE"})", R"("num_attention_heads")"},
    {"KvHeadsZero", R"({"num_key_value_heads": 0})", "num_key_value_heads to be"},
    {"KvHeadsDoNotDivide", R"({"num_key_value_heads": 5})",
     "num_key_value_heads to be a divisor of num_attention_heads, 32, got the number 5"},
    {"KvHeadsAboveHeads", R"({"num_key_value_heads": 64})", "a divisor of num_attention_heads"},
    {"HeadDimZero", R"({"head_dim": 0})", "head_dim to be an integer from 1"},
    {"HeadDimOdd", R"({"head_dim": 63})", "head_dim to be even"},
    {"HeadDimHuge", R"({"head_dim": 1000000})", "head_dim to be an integer from 1"},
    {"HiddenNoMultipleOfHeads", R"({"head_dim": "REMOVE", "num_attention_heads": 24})",
     "hidden_size to be an even multiple, at most 4096, of num_attention_heads, 24"},
    {"HeadDimOddWithoutKey", R"({"head_dim": null, "hidden_size": 96})",
     "hidden_size to be an even multiple"},
    {"PositionsZero", R"({"max_position_embeddings": 0})", "max_position_embeddings to be"},
    {"EpsZero", R"({"rms_norm_eps": 0.0})", "rms_norm_eps to be a number from"},
    {"EpsNegative", R"({"rms_norm_eps": -1e-5})", "rms_norm_eps to be a number from"},
    {"EpsText", R"({"rms_norm_eps": "1e-5"})", "rms_norm_eps to be a number from"},
    {"TiedIsANumber", R"({"tie_word_embeddings": 1})", "tie_word_embeddings to be true or false"},
    {"AttentionBiasIsText", R"({"attention_bias": "no"})", "attention_bias to be true or false"},
    {"MlpBiasIsANumber", R"({"mlp_bias": 0})", "mlp_bias to be true or false"},
    {"Gelu", R"({"hidden_act": "gelu"})", "hidden_act to be silu"},
    {"ActIsANumber", R"({"hidden_act": 3})", "hidden_act to be a string"},
    {"Quantised", R"({"quantization_config": {"quant_method": "gptq", "bits": 4}})",
     R"(quantised weights are not supported, got quant_method the string "gptq")"},
    {"Dtype", R"({"torch_dtype": "float8_e4m3fn"})",
     "torch_dtype to be float32, bfloat16 or float16"},
    {"DtypeIsANumber", R"({"dtype": 16})", "dtype to be a string"},
    {"EosNegative", R"({"eos_token_id": -1})", "eos_token_id to be an integer from 0"},
    {"EosInListIsText", R"({"eos_token_id": [1, "2"]})", "eos_token_id[1] to be an integer"},
    {"BosIsAList", R"({"bos_token_id": [1]})", "bos_token_id to be an integer"},
    {"ThetaZero", R"({"rope_theta": 0})", "rope_theta to be a number from"},
    {"ThetaNegative", R"({"rope_theta": -10000.0})", "rope_theta to be a number from"},
    {"ThetaText", R"({"rope_theta": "1e4"})", "rope_theta to be a number from"},
    {"ThetaInsideText", R"({"rope_scaling": {"rope_type": "default", "rope_theta": "x"}})",
     "rope_scaling.rope_theta to be a number from"},
    {"RopeIsText", R"({"rope_scaling": "linear"})", "rope_scaling to be an object"},
    {"RopeIsAList", R"({"rope_scaling": "REMOVE", "rope_parameters": []})",
     "rope_parameters to be an object"},
    {"RopeUnknown", R"({"rope_scaling": {"type": "yarn", "factor": 4.0}})",
     R"(rope_scaling.type to be default, linear or llama3, got the string "yarn")"},
    {"RopeWithoutType", R"({"rope_scaling": {"factor": 4.0}})",
     "rope_scaling to be an object with rope_type"},
    {"RopeLinearWithoutFactor", R"({"rope_scaling": {"type": "linear"}})",
     R"(the key "factor" in rope_scaling)"},
    {"RopeFactorZero", R"({"rope_scaling": {"type": "linear", "factor": 0}})",
     "rope_scaling.factor to be a number from"},
    {"RopeFactorNegative", R"({"rope_scaling": {"type": "linear", "factor": -2.0}})",
     "rope_scaling.factor to be a number from"},
    {"RopeLlama3WithoutLow",
     R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "high_freq_factor": 4.0}})",
     R"(the key "low_freq_factor" in rope_scaling)"},
    {"RopeLlama3HighNotAboveLow",
     R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "high_freq_factor": 1.0,
         "low_freq_factor": 1.0}})",
     "rope_scaling.high_freq_factor to be above low_freq_factor, the number 1.0"},
    {"RopeLlama3OriginalZero",
     R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "high_freq_factor": 4.0,
         "low_freq_factor": 1.0, "original_max_position_embeddings": 0}})",
     "rope_scaling.original_max_position_embeddings to be an integer from 1"},
    {"RopeOfEachLayerType",
     R"({"rope_scaling": "REMOVE", "rope_parameters": {"full_attention": {"rope_theta": 1.0}}})",
     "rope_parameters.full_attention to be a value that holds for all layers"},
    {"RopePartial", R"({"partial_rotary_factor": 0.5})", "partial_rotary_factor to be 1"},
    {"RopePartialInside",
     R"({"rope_scaling": {"rope_type": "default", "partial_rotary_factor": 0.25}})",
     "rope_scaling.partial_rotary_factor to be 1"},
};

const BadValue kQwen3[] = {
    {"SlidingWindow", R"({"use_sliding_window": true})",
     "use_sliding_window to be false, as sliding windows are not supported"},
    {"SlidingWindowIsText", R"({"use_sliding_window": "no"})", "use_sliding_window to be true or"},
    {"LayerTypesOfAnotherLength", R"({"layer_types": ["full_attention"]})",
     "layer_types to be an array with one type for each of the 28 layers"},
    {"LayerTypeSliding",
     R"({"num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"]})",
     "layer_types[1] to be full_attention"},
    {"LayerTypeIsANumber", R"({"num_hidden_layers": 1, "layer_types": [1]})",
     "layer_types[0] to be a string"},
    {"MixtureOfExperts", R"({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe"})",
     R"(got the string "Qwen3MoeForCausalLM")"},
};

const BadValue kGeneration[] = {
    {"NoObject", "[]", "to be an object, got an array"},
    {"TemperatureNegative", R"({"temperature": -0.1})", "temperature to be a number from 0.0"},
    {"TemperatureText", R"({"temperature": "hot"})", R"(got the string "hot")"},
    {"TopKNegative", R"({"top_k": -1})", "top_k to be an integer from 0"},
    {"TopKFraction", R"({"top_k": 0.5})", "top_k to be an integer from 0"},
    {"TopPZero", R"({"top_p": 0})", "top_p to be a number from"},
    {"TopPAboveOne", R"({"top_p": 1.5})", "top_p to be a number from"},
    {"MinPAboveOne", R"({"min_p": 2})", "min_p to be a number from"},
    {"PenaltyZero", R"({"repetition_penalty": 0})", "repetition_penalty to be a number from"},
    {"DoSampleText", R"({"do_sample": "yes"})", "do_sample to be true or false"},
    {"EosFraction", R"({"eos_token_id": 1.5})", "eos_token_id to be an integer from 0"},
    {"EosListOfLists", R"({"eos_token_id": [[1]]})", "eos_token_id[0] to be an integer from 0"},
};

std::string name_of_case(const ::testing::TestParamInfo<BadValue>& each) {
  return each.param.name;
}

INSTANTIATE_TEST_SUITE_P(Table, BadLlamaConfig, ::testing::ValuesIn(kLlama), name_of_case);
INSTANTIATE_TEST_SUITE_P(Table, BadQwen3Config, ::testing::ValuesIn(kQwen3), name_of_case);
INSTANTIATE_TEST_SUITE_P(Table, BadGenerationConfig, ::testing::ValuesIn(kGeneration),
                         name_of_case);

TEST(BadConfigFile, IsRefusedWithASentence) {
  const testing::TemporaryFolder folder;
  const auto refusal = [&](const std::string& text) {
    const std::string path = folder.write("config.json", text);
    std::string sentence = testing::refusal_of([&] { read_config(path); });
    testing::expect_sentence(sentence);
    testing::expect_part(sentence, path);
    return sentence;
  };
  testing::expect_part(refusal(""), "where the text ends");
  testing::expect_part(refusal("[1]"), "the whole to be an object");
  testing::expect_part(refusal("null"), "the whole to be an object");
  testing::expect_part(refusal("{\"vocab_size\": 1, \"vocab_size\": 2}"), "twice in one object");
  testing::expect_part(refusal("{\"vocab_size\": NaN}"), "valid JSON");
  testing::expect_part(refusal("{\"rms_norm_eps\": 1e999}"), "beyond the range of double");
  testing::expect_part(refusal("{\"a\": \"\xff\"}"), "UTF-8");
  testing::expect_part(refusal(std::string(200'000, '[')), "nesting deeper");
  testing::expect_part(refusal("version https://git-lfs.github.com/spec/v1\n"), "Git LFS pointer");
  testing::expect_part(testing::refusal_of([&] { read_config(folder.path("gone/config.json")); }),
                       "no such file");
}

}  // namespace
}  // namespace tileweave
