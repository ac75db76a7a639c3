// The verbs of language models as a user starts them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "tests/cli/command.h"
#include "tests/cli/model_folder.h"
#include "tileweave/models/checkpoint/safetensors.h"

namespace tileweave::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

nlohmann::json json_of(const Words& arguments, int status = kSuccess) {
  const CommandResult result = run(arguments);
  EXPECT_EQ(result.status, status) << result.err;
  const auto json = nlohmann::json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(json.is_object()) << result.out;
  return json;
}

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class ModelVerbs : public testing::Test {
 protected:
  ModelFolder folder_;
  Words generate_ = {"generate", "--model",      folder_.path(), "--max-new-tokens",
                     "6",        "--ignore-eos", "--json"};
};

TEST_F(ModelVerbs, GenerateGivesTheSameIdsInEveryModeSubmissionAndGranularity) {
  const Words ids = with(generate_, {"--ids", "5,6,7,8"});
  const nlohmann::json expected = json_of(ids);
  EXPECT_EQ(expected.at("ids").size(), 6U);
  EXPECT_EQ(expected.at("mode"), "overlap");
  EXPECT_EQ(expected.at("submit"), "graph");
  EXPECT_EQ(expected.at("granularity"), expected.at("device") == "cuda" ? "stages" : "ops");
  EXPECT_TRUE(expected.at("text").is_string());
  EXPECT_GT(expected.at("timings").at("decode_tokens_per_second").get<double>(), 0);
  for (const Words& more :
       {Words{"--mode", "serial"}, Words{"--submit", "eager"}, Words{"--granularity", "stages"},
        Words{"--streams", "1"}, Words{"--device", "cpu"}}) {
    EXPECT_EQ(json_of(with(ids, more)).at("ids"), expected.at("ids")) << more[1];
  }
}

TEST_F(ModelVerbs, GenerateTakesIdsVerbatimAndTextWithSpecialTokens) {
  const nlohmann::json tokens =
      json_of({"tokenize", "--model", folder_.path(), "--text", "Hello there", "--json"});
  std::string ids;
  for (const auto& id : tokens.at("ids")) {
    ids += (ids.empty() ? "" : ",") + std::to_string(id.get<int>());
  }
  EXPECT_EQ(json_of(with(generate_, {"--prompt", "Hello there"})).at("ids"),
            json_of(with(generate_, {"--ids", ids})).at("ids"));
}

TEST_F(ModelVerbs, RepeatedPromptsAreOneBatchWithTheIdsOfEachAlone) {
  const nlohmann::json batch =
      json_of(with(generate_, {"--prompt", "One", "--prompt", "A longer one, of many tokens"}));
  ASSERT_EQ(batch.at("sequences").size(), 2U);
  EXPECT_FALSE(batch.contains("ids"));
  EXPECT_EQ(batch.at("sequences")[0].at("ids"),
            json_of(with(generate_, {"--prompt", "One"})).at("ids"));
  EXPECT_EQ(batch.at("sequences")[1].at("ids"),
            json_of(with(generate_, {"--prompt", "A longer one, of many tokens"})).at("ids"));
}

TEST_F(ModelVerbs, TheChatTemplateIsAppliedWhenAskedFor) {
  const nlohmann::json chat = json_of(with(generate_, {"--prompt", "Hi", "--chat"}));
  EXPECT_EQ(chat.at("ids"),
            json_of(with(generate_,
                         {"--prompt", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"}))
                .at("ids"));
  EXPECT_NE(chat.at("ids"), json_of(with(generate_, {"--prompt", "Hi"})).at("ids"));
}

TEST_F(ModelVerbs, TextStreamsToStandardOutputAndTimesToStandardError) {
  const CommandResult result = run({"generate", "--model", folder_.path(), "--prompt", "Hi",
                                    "--max-new-tokens", "6", "--ignore-eos"});
  EXPECT_EQ(result.status, kSuccess);
  EXPECT_EQ(result.out,
            json_of(with(generate_, {"--prompt", "Hi"})).at("text").get<std::string>() + "\n");
  EXPECT_NE(result.err.find("tokens/s"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos) << "no terminal, no control characters";
}

TEST_F(ModelVerbs, LogitsAreOneF32Tensor) {
  const std::string file = folder_ / "logits.safetensors";
  const CommandResult result =
      run({"logits", "--model", folder_.path(), "--ids", "1,2,3", "--out", file});
  EXPECT_EQ(result.status, kSuccess) << result.err;
  const Safetensors logits = Safetensors::open(file);
  ASSERT_EQ(logits.tensors().size(), 1U);
  EXPECT_EQ(logits.tensors()[0].name, "logits");
  EXPECT_EQ(logits.tensors()[0].dtype_name, "F32");
  EXPECT_EQ(logits.tensors()[0].shape[0], 3);
  // Greedy decoding takes the largest of the last row.
  const StoredTensor& tensor = logits.tensors()[0];
  const auto vocabulary = static_cast<std::size_t>(tensor.shape[1]);
  std::vector<float> last(vocabulary);
  std::memcpy(last.data(), tensor.bytes.data() + 2 * vocabulary * sizeof(float),
              vocabulary * sizeof(float));
  const auto largest = std::max_element(last.begin(), last.end()) - last.begin();
  EXPECT_EQ(json_of(with(generate_, {"--ids", "1,2,3"})).at("ids")[0], largest);
}

/// The tensor of a file that `tileweave logits` wrote, row by row.
std::vector<std::vector<float>> rows_of(const std::string& path) {
  const Safetensors file = Safetensors::open(path);
  const StoredTensor& tensor = file.tensors().at(0);
  std::vector<std::vector<float>> rows(static_cast<std::size_t>(tensor.shape[0]));
  const auto columns = static_cast<std::size_t>(tensor.shape[1]);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows[r].resize(columns);
    std::memcpy(rows[r].data(), tensor.bytes.data() + r * columns * sizeof(float),
                columns * sizeof(float));
  }
  return rows;
}

TEST_F(ModelVerbs, LogitsOfAFileOfSequencesAreThoseOfEachAlone) {
  const std::vector<std::string> lines = {"1,2,3", "9,8", "7,7,7,7"};
  folder_.write("ids.txt", lines[0] + "\n" + lines[1] + "\n" + lines[2] + "\n");
  const auto logits_of = [&](const std::string& name, const Words& more) {
    const Words words = {"logits", "--model", folder_.path(), "--out", folder_ / name};
    const CommandResult result = run(with(words, more));
    EXPECT_EQ(result.status, kSuccess) << result.err;
    return rows_of(folder_ / name);
  };
  std::vector<std::vector<std::vector<float>>> alone;
  for (const std::string& line : lines) alone.push_back(logits_of("alone", {"--ids", line}));

  std::vector<std::vector<float>> expected;
  for (const auto& rows : alone) expected.insert(expected.end(), rows.begin(), rows.end());
  EXPECT_EQ(logits_of("prompts", {"--ids-file", folder_ / "ids.txt"}), expected);
  EXPECT_EQ(logits_of("cut", {"--ids-file", folder_ / "ids.txt", "--rows-per-step", "2"}),
            expected);

  // Two by two: position by position, then the third.
  expected = {alone[0][0], alone[1][0], alone[0][1], alone[1][1], alone[0][2],
              alone[2][0], alone[2][1], alone[2][2], alone[2][3]};
  EXPECT_EQ(logits_of("decode", {"--ids-file", folder_ / "ids.txt", "--side-by-side", "2"}),
            expected);
}

TEST_F(ModelVerbs, LogitsGoStraightIntoANamedPipe) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread reader([&] {
    std::ofstream(folder_ / "copy", std::ios::binary)
        << std::ifstream(pipe, std::ios::binary).rdbuf();
  });
  const Words words = {"logits", "--model", folder_.path(), "--ids", "1,2,3", "--out"};
  EXPECT_EQ(run(with(words, {pipe})).status, kSuccess);
  reader.join();
  EXPECT_EQ(run(with(words, {folder_ / "file"})).status, kSuccess);
  EXPECT_EQ(folder_.read("copy"), folder_.read("file"));
}

TEST_F(ModelVerbs, TokenizeNeedsTheTokenizerAloneAndTakesBytesVerbatim) {
  for (const char* name : {"config.json", "model.safetensors", "tokenizer_config.json"}) {
    fs::remove(folder_ / name);
  }
  const std::string text = "a line\r\n  and\tanother\n\n";
  folder_.write("text.txt", text);
  const nlohmann::json tokens = json_of({"tokenize", "--model", folder_.path(), "--text-file",
                                         folder_ / "text.txt", "--no-special", "--json"});
  EXPECT_EQ(tokens.at("text"), text);
  std::string ids;
  for (const auto& id : tokens.at("ids")) {
    ids += (ids.empty() ? "" : ",") + std::to_string(id.get<int>());
  }
  EXPECT_EQ(run({"tokenize", "--model", folder_.path(), "--text", text, "--no-special"}).out,
            ids + "\n");
  EXPECT_EQ(run({"tokenize", "--model", folder_.path(), "--ids", ids}).out, text + "\n");
}

TEST_F(ModelVerbs, InfoAndCheckDescribeTheModel) {
  const nlohmann::json info = json_of({"info", "--model", folder_.path(), "--json"});
  EXPECT_EQ(info.at("architecture"), "LlamaForCausalLM");
  EXPECT_GT(info.at("parameters").get<std::int64_t>(), 10'000);
  EXPECT_EQ(info.at("memory").at("weights_bytes").get<std::int64_t>(),
            2 * info.at("parameters").get<std::int64_t>());
  EXPECT_NE(run({"info", "--model", folder_.path()}).out.find("KV cache"), std::string::npos);
  fs::remove(folder_ / "model.safetensors");
  const nlohmann::json check = json_of({"check", "--model", folder_.path(), "--json"});
  EXPECT_EQ(check.at("ok"), true);
  EXPECT_EQ(check.at("downgrades"), 0);
  EXPECT_EQ(
      json_of({"check", "--model", folder_.path(), "--device", "cpu", "--json"}).at("granularity"),
      "ops");
  const std::string table = run({"check", "--model", folder_.path(), "--rows", "40"}).out;
  EXPECT_NE(table.find("capacity"), std::string::npos) << table;
}

TEST_F(ModelVerbs, TraceWritesATimelineAndExposedTimes) {
  const std::string page = folder_ / "deep/er/timeline.html";
  const std::string trace = folder_ / "trace.json";
  const nlohmann::json report =
      json_of({"trace", "--model", folder_.path(), "--timeline", page, "--trace", trace, "--json"});
  EXPECT_GT(report.at("makespan_ns").get<std::int64_t>(), 0);
  EXPECT_GE(report.at("operators").size(), 8U);
  EXPECT_GT(fs::file_size(page), 1000U);
  EXPECT_GT(fs::file_size(trace), 1000U);
}

TEST_F(ModelVerbs, BenchDecodeComparesModesWithTheReadRate) {
  const nlohmann::json report = json_of({"bench", "decode", "--model", folder_.path(), "--repeat",
                                         "2", "--new-tokens", "2", "--context", "5", "--json"});
  ASSERT_EQ(report.at("arms").size(), 2U);
  EXPECT_GT(report.at("read_bytes_per_second").get<double>(), 1e8);
  EXPECT_GT(report.at("arms")[1].at("tokens_per_second").get<double>(), 0);
}

TEST_F(ModelVerbs, BenchPrefillGivesARateForEveryLength) {
  const nlohmann::json report =
      json_of({"bench", "prefill", "--model", folder_.path(), "--tokens", "3,40", "--repeat", "2",
               "--device", "cpu", "--json", "--json-file", folder_ / "prefill.json"});
  ASSERT_EQ(report.at("prompts").size(), 2U);
  for (const auto& prompt : report.at("prompts")) {
    EXPECT_NEAR(prompt.at("tokens_per_second").get<double>() * prompt.at("ms").get<double>(),
                prompt.at("tokens").get<double>() * 1e3, 1e-6);
  }
  // 2 layers of 32 x (32 + 2 x 16) + 32 x 32 + 3 x 32 x 48 weights; 4 x 32 for each of 1 + 2 + 3
  // pairs of tokens.
  EXPECT_EQ(report.at("prompts")[0].at("flops").get<double>(), 2 * (2 * 3 * 7680 + 4 * 32 * 6));
  EXPECT_EQ(nlohmann::json::parse(folder_.read("prefill.json")), report);
  EXPECT_EQ(json_of({"bench", "prefill", "--model", folder_.path(), "--tokens", "3", "--repeat",
                     "1", "--device", "cpu", "--rows-per-step", "16", "--json"})
                .at("rows_per_step"),
            16);
  EXPECT_EQ(run({"bench", "prefill", "--model", folder_.path(), "--tokens", "257"}).status,
            kFailure);
}

TEST_F(ModelVerbs, BenchDecodeTakesListsOnAGpuAlone) {
  const Words bench = {"bench", "decode", "--device", "cpu", "--model", folder_.path()};
  for (const Words& more : {Words{"--batch", "1,2"}, Words{"--granularity", "ops,stages"},
                            Words{"--tile"}, Words{"--json-file", folder_ / "bench.json"},
                            Words{"--grow", "8+4"}, Words{"--without-attention"}}) {
    const CommandResult result = run(with(bench, more));
    EXPECT_EQ(result.status, kFailure) << more[0];
    EXPECT_NE(result.err.find("on the CPU"), std::string::npos) << result.err;
  }
  for (const Words& more :
       {Words{"--batch", "1,"}, Words{"--context", "0"}, Words{"--batch", "x"},
        Words{"--granularity", "layers"}, Words{"--steps", "0"}, Words{"--grow", "8"}}) {
    EXPECT_EQ(run(with(bench, more)).status, kUsageError) << more[1];
  }
}

TEST_F(ModelVerbs, KnobsChangeThePlanAndNoToken) {
  folder_.write("knobs.json", R"({"num_streams": 2, "ops": {"o": {"edge": "full"}}})");
  folder_.write("bad.json", R"({"ops": {"o": {"edge": "soft"}}})");
  const Words ids = with(generate_, {"--ids", "5,6,7,8", "--device", "cpu"});
  EXPECT_EQ(json_of(with(ids, {"--knobs", folder_ / "knobs.json"})).at("ids"),
            json_of(ids).at("ids"));
  const CommandResult bad = run(with(ids, {"--knobs", folder_ / "bad.json"}));
  EXPECT_EQ(bad.status, kFailure);
  EXPECT_NE((bad.out + bad.err).find("programmatic"), std::string::npos) << "names what there is";
  const nlohmann::json check = json_of({"check", "--model", folder_.path(), "--device", "cpu",
                                        "--knobs", folder_ / "knobs.json", "--json"});
  EXPECT_TRUE(check.at("edge_counts").contains("full"));
}

TEST_F(ModelVerbs, WhatTuneMeasuredIsTakenUntilItIsDamaged) {
  const std::string cache = folder_ / "cache";
  const nlohmann::json report =
      json_of({"tune", "--model", folder_.path(), "--device", "cpu", "--batch", "1,2", "--context",
               "5", "--steps", "2", "--repeat", "2", "--cache", cache, "--json"});
  EXPECT_EQ(report.at("device"), "cpu");
  ASSERT_EQ(report.at("cases").size(), 2U);
  std::vector<std::string> files;
  for (const auto& one : report.at("cases")) {
    files.push_back(one.at("stored_in"));
    EXPECT_TRUE(fs::is_regular_file(files.back()));
    ASSERT_GE(one.at("arms").size(), 3U);
    for (const auto& arm : one.at("arms")) EXPECT_GT(arm.at("ms_per_step"), 0) << arm;
  }
  EXPECT_NE(files[0], files[1]);
  EXPECT_EQ(
      json_of({"doctor", "--device", "cpu", "--cache", cache, "--json"}).at("tuned").at("entries"),
      2);

  folder_.write("knobs.json", R"({"num_streams": 2})");
  const Words ids = with(generate_, {"--ids", "5,6,7,8", "--device", "cpu", "--cache", cache});
  const nlohmann::json cached = json_of(ids);
  EXPECT_EQ(cached.at("knobs"), "cached");
  const nlohmann::json without = json_of(with(ids, {"--no-cache"}));
  EXPECT_EQ(without.at("knobs"), "default");
  EXPECT_EQ(without.at("ids"), cached.at("ids"));
  EXPECT_EQ(json_of(with(ids, {"--knobs", folder_ / "knobs.json"})).at("knobs"), "file");
  EXPECT_EQ(json_of(with(ids, {"--granularity", "stages"})).at("knobs"), "default");
  EXPECT_EQ(
      json_of({"check", "--model", folder_.path(), "--device", "cpu", "--cache", cache, "--json"})
          .at("knobs"),
      "cached");

  for (const std::string& file : files) fs::resize_file(file, fs::file_size(file) / 2);
  const CommandResult damaged = run(ids);
  EXPECT_EQ(damaged.status, kSuccess);
  const nlohmann::json json = nlohmann::json::parse(damaged.out);
  EXPECT_EQ(json.at("knobs"), "default");
  EXPECT_EQ(json.at("ids"), cached.at("ids"));
  const std::size_t note = damaged.err.find(files[0]);
  EXPECT_NE(note, std::string::npos) << damaged.err;
  EXPECT_EQ(damaged.err.find(files[0], note + 1), std::string::npos) << "said once";
}

TEST_F(ModelVerbs, TuneKeepsNothingWhereItIsToldSoOrCannot) {
  const Words tune = {"tune",    "--model", folder_.path(), "--device", "cpu",   "--context", "3",
                      "--steps", "1",       "--repeat",     "1",        "--json"};
  EXPECT_TRUE(json_of(with(tune, {"--no-cache"})).at("cases")[0].at("stored_in").is_null());
  const CommandResult result = run(with(tune, {"--cache", "/dev/null/x"}));
  EXPECT_EQ(result.status, kSuccess);
  EXPECT_NE(result.err.find("not kept"), std::string::npos) << result.err;
  const CommandResult table = run({"tune", "--model", folder_.path(), "--device", "cpu",
                                   "--context", "3", "--steps", "1", "--repeat", "1"});
  EXPECT_NE(table.out.find("* "), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("kept in"), std::string::npos) << table.out;
  for (const Words& more : {Words{"--batch", "0"}, Words{"--steps", "0"}, Words{"--knobs", "f"},
                            Words{"--products", "maybe"}}) {
    EXPECT_EQ(run(with(tune, more)).status, kUsageError) << more[0];
  }
  EXPECT_EQ(run({"tune", "--model", folder_.path(), "--device", "cpu", "--context", "255"}).status,
            kFailure)
      << "longer than the model";
}

TEST_F(ModelVerbs, APresetStandsForAModel) {
  const nlohmann::json check = json_of(
      {"check", "--model", "qwen3-0.6b", "--device", "cpu", "--granularity", "stages", "--json"});
  EXPECT_EQ(check.at("ok"), true);
  EXPECT_GT(check.at("nodes").get<int>(), 28 * 5);
}

TEST_F(ModelVerbs, ChatRepliesToEveryLine) {
  folder_.write("talk", "Hello\nAnd more?\n");
  Command command({"chat", "--model", folder_.path(), "--max-new-tokens", "4"});
  command.in_from(folder_ / "talk");
  command.start();
  const CommandResult result = command.finish();
  EXPECT_EQ(result.status, kSuccess) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '['), 2) << result.err;
}

TEST_F(ModelVerbs, ControlCEndsTheReplyAndKeepsWhatWasSaid) {
  Command command({"generate", "--model", folder_.path(), "--prompt", "Hi", "--max-new-tokens",
                   "100000", "--ignore-eos", "--json"});
  folder_.edit("config.json", "\"max_position_embeddings\": 256",
               "\"max_position_embeddings\": 100000");
  command.start();
  command.wait_until_it_handles_interrupts();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  command.interrupt();
  const CommandResult result = command.finish();
  EXPECT_EQ(result.status, kInterrupted);
  if (!result.out.empty()) {  // it was past loading
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_EQ(json.at("finish"), "stopped");
  }
}

struct BadInput {
  const char* name;
  std::function<void(const ModelFolder&)> break_it;
  Words arguments;
  std::vector<std::string> says;
};

TEST_F(ModelVerbs, BadInputIsOneSentenceThatNamesIt) {
  const std::string missing = folder_ / "missing";
  const Words generate{"generate", "--prompt", "Hi"};
  const auto nothing = [](const ModelFolder&) {};
  folder_.write("bad_ids.txt", "1,2\n3,x\n");
  folder_.write("no_ids.txt", "");
  const std::vector<BadInput> cases = {
      {"no directory", nothing, {"info", "--model", missing}, {"missing"}},
      {"empty prompt", nothing, {"generate", "--prompt", ""}, {"at least one token"}},
      {"invalid UTF-8", nothing, {"generate", "--prompt", "a\xff"}, {"UTF-8", "byte 1"}},
      {"id beyond the vocabulary", nothing, {"generate", "--ids", "1,99999"}, {"99999"}},
      {"negative id", nothing, {"generate", "--ids", "-1"}, {"-1"}},
      {"ids that are none", nothing, {"generate", "--ids", "1,,2"}, {"1,,2"}},
      {"over-long prompt",
       nothing,
       {"generate", "--prompt", std::string(3000, 'x') + " " + std::string(3000, 'y')},
       {"at most 255 tokens"}},
      {"unwritable logits", nothing, {"logits", "--ids", "1", "--out", missing + "/a/b"}, {"a/b"}},
      {"no file of ids",
       nothing,
       {"logits", "--ids-file", missing, "--out", folder_ / "x"},
       {"missing"}},
      {"ids that are none in a file",
       nothing,
       {"logits", "--ids-file", folder_ / "bad_ids.txt", "--out", folder_ / "x"},
       {"line 2", "bad_ids.txt", "3,x"}},
      {"a file of no ids",
       nothing,
       {"logits", "--ids-file", folder_ / "no_ids.txt", "--out", folder_ / "x"},
       {"none in", "no_ids.txt"}},
      {"timeline is a folder", nothing, with(generate, {"--timeline", folder_.path()}), {"folder"}},
      {"products of a GPU on the CPU",
       nothing,
       with(generate, {"--device", "cpu", "--wide-products", "vendor"}),
       {"a GPU for --wide-products vendor", "`cpu`"}},
      {"products of a GPU in a plan of the CPU",
       nothing,
       {"check", "--device", "cpu", "--wide-products", "vendor"},
       {"a GPU for --wide-products vendor", "`cpu`"}},
      {"bad temperature", nothing, with(generate, {"--temperature", "-1"}), {"temperature"}},
      {"bad top-p", nothing, with(generate, {"--top-p", "0"}), {"top_p"}},
      {"no config",
       [](const ModelFolder& f) { fs::remove(f / "config.json"); },
       generate,
       {"config.json"}},
      {"no weights",
       [](const ModelFolder& f) { fs::remove(f / "model.safetensors"); },
       generate,
       {"safetensors"}},
      {"no tokenizer",
       [](const ModelFolder& f) { fs::remove(f / "tokenizer.json"); },
       generate,
       {"tokenizer.json"}},
      {"no template",
       [](const ModelFolder& f) { fs::remove(f / "tokenizer_config.json"); },
       with(generate, {"--chat"}),
       {"chat_template"}},
      {"weights cut short",
       [](const ModelFolder& f) {
         fs::resize_file(f / "model.safetensors", fs::file_size(f / "model.safetensors") - 5);
       },
       generate,
       {"model.safetensors"}},
      {"weights are a pointer",
       [](const ModelFolder& f) {
         f.write("model.safetensors",
                 "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
       },
       generate,
       {"model.safetensors", "LFS"}},
      {"unknown architecture",
       [](const ModelFolder& f) { f.edit("config.json", "LlamaForCausalLM", "GPTNeoX"); },
       generate,
       {"GPTNeoX"}},
      {"shape against config",
       [](const ModelFolder& f) {
         f.edit("config.json", "\"intermediate_size\": 48", "\"intermediate_size\": 64");
       },
       generate,
       {"(48, 32)", "(64, 32)"}},
      {"config cut short",
       [](const ModelFolder& f) { f.write("config.json", f.read("config.json").substr(0, 40)); },
       generate,
       {"config.json"}},
      {"broken template",
       [](const ModelFolder& f) {
         f.write("tokenizer_config.json", R"({"chat_template": "{% if %}"})");
       },
       with(generate, {"--chat"}),
       {"template"}},
      {"no prompt", nothing, {"generate"}, {"--prompt"}},
      {"prompt and ids", nothing, {"generate", "--prompt", "a", "--ids", "1"}, {"--ids"}},
      {"chat of ids", nothing, {"generate", "--chat", "--ids", "1"}, {"--chat"}},
  };
  for (const BadInput& bad : cases) {
    SCOPED_TRACE(bad.name);
    const ModelFolder folder;
    bad.break_it(folder);
    Words arguments = bad.arguments;
    if (arguments[0] != "info") arguments = with(arguments, {"--model", folder.path()});
    const CommandResult result = run(arguments);
    EXPECT_TRUE(result.status == kFailure || result.status == kUsageError) << result.status;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    for (const std::string& part : bad.says) {
      EXPECT_NE(result.err.find(part), std::string::npos) << part << " in " << result.err;
    }
    // With --json the one object says the same.
    if (result.status == kFailure && arguments[0] == "generate") {
      EXPECT_TRUE(json_of(with(arguments, {"--json"}), kFailure).contains("error"));
    }
  }
}

TEST_F(ModelVerbs, APromptInBracketsIsOnePromptAndTakesNoArgumentBesideItself) {
  for (const char* text : {"[a, b]", "[]", "{}", "--", "-x", "\"q\""}) {
    SCOPED_TRACE(text);
    const nlohmann::json tokens =
        json_of({"tokenize", "--model", folder_.path(), "--text", text, "--json"});
    const nlohmann::json reply = json_of({"generate", "--model", folder_.path(), "--prompt", text,
                                          "--json", "--max-new-tokens", "1"});
    EXPECT_EQ(reply.at("timings").at("prompt_tokens"), tokens.at("ids").size());
  }
  EXPECT_EQ(run(with(generate_, {"--prompt", "a", "b"})).status, kUsageError);
  EXPECT_EQ(run(with(generate_, {"--ids", "[1,2]"})).status, kUsageError);
}

TEST_F(ModelVerbs, NumbersAreDecimalAndNeverBentToWhatFits) {
  const Words ids{"generate", "--model", folder_.path(), "--ids", "5,6", "--json"};
  const auto new_tokens = [&](const std::string& count) {
    return json_of(with(ids, {"--ignore-eos", "--max-new-tokens", count})).at("ids").size();
  };
  EXPECT_EQ(new_tokens("010"), 10U);
  EXPECT_EQ(new_tokens("0"), 0U);
  EXPECT_EQ(new_tokens("1000000000000"), 254U);
  EXPECT_EQ(new_tokens("9223372036854775807"), 254U);
  for (const Words& more : {Words{"--max-new-tokens", "9223372036854775808"},
                            Words{"--max-new-tokens", "-1"}, Words{"--max-new-tokens", "1e3"},
                            Words{"--seed", "-1"}, Words{"--seed", "18446744073709551616"},
                            Words{"--top-k", "2147483648"}, Words{"--streams", "0x2"},
                            Words{"--temperature", "nan"}, Words{"--temperature", "1e-40"}}) {
    SCOPED_TRACE(more[0] + " " + more[1]);
    const CommandResult result = run(with(ids, more));
    EXPECT_EQ(result.status, kUsageError);
    EXPECT_LT(result.err.size(), 200U) << result.err;
    EXPECT_TRUE(nlohmann::json::parse(result.out).contains("error")) << result.out;
  }
  const Words trace{"trace", "--model", folder_.path(), "--json"};
  EXPECT_TRUE(json_of(with(trace, {"--context", "2147483647"}), kFailure).contains("error"));
  EXPECT_EQ(run(with(trace, {"--context", "9223372036854775807"})).status, kUsageError);
}

TEST_F(ModelVerbs, JsonIsOneObjectHoweverTheVerbFails) {
  const Words ids = with(generate_, {"--ids", "5,6"});
  const std::string page = folder_ / "page";
  struct Case {
    Words arguments;
    int status;
  };
  const std::vector<Case> cases = {
      {{"generate", "--json"}, kUsageError},
      {with(ids, {"--prompt", "too"}), kUsageError},
      {with(ids, {"--unknown"}), kUsageError},
      {with(ids, {"--system", "Be brief."}), kUsageError},
      {{"generate", "--model", folder_.path(), "--ids", "1", "--max-new-tokens", "0", "--timeline",
        page, "--json"},
       kUsageError},
      {with(ids, {"--timeline", page, "--trace", page}), kFailure},
      {with(ids, {"--timeline", page, "--trace", folder_ / "./page"}), kFailure},
      {with(ids, {"--timeline", "/dev/null"}), kFailure},
      {with(ids, {"--trace", page + "/" + std::string(300, 'x')}), kFailure},
      {{"generate", "--model", folder_.path(), "--ids", "99999", "--max-new-tokens", "0", "--json"},
       kFailure},
      {{"logits", "--model", folder_.path(), "--ids", "", "--out", page, "--json"}, kUsageError},
      {{"logits", "--model", folder_.path(), "--ids", "1", "--out", "", "--json"}, kUsageError},
      {{"tokenize", "--model", folder_.path(), "--ids", "", "--json"}, kUsageError},
      {{"tokenize", "--model", folder_.path(), "--text-file", "", "--json"}, kFailure},
      {{"tokenize", "--model", folder_.path(), "--text-file", folder_.path(), "--json"}, kFailure},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c.arguments));
    EXPECT_TRUE(json_of(c.arguments, c.status).contains("error"));
  }
  EXPECT_FALSE(fs::is_regular_file(page));
}

TEST_F(ModelVerbs, TokenizeRefusesAnInputThatCannotBeRead) {
  Command command({"tokenize", "--model", folder_.path(), "--text-file", "-"});
  command.in_from(folder_.path());  // a folder can be opened, not read
  command.start();
  const CommandResult result = command.finish();
  EXPECT_EQ(result.status, kFailure);
  EXPECT_NE(result.err.find("standard input"), std::string::npos) << result.err;
}

TEST_F(ModelVerbs, TokenizeSaysWhichIdsNameNoToken) {
  const CommandResult result =
      run({"tokenize", "--model", folder_.path(), "--ids", "5,99999", "--json"});
  EXPECT_EQ(result.status, kSuccess);
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_TRUE(json.at("tokens")[0].is_string());
  EXPECT_TRUE(json.at("tokens")[1].is_null());
  EXPECT_NE(result.err.find("1 of 2 ids"), std::string::npos) << result.err;
}

TEST_F(ModelVerbs, WeightsThatAreNoNumbersAreRefused) {
  std::string bytes = folder_.read("model.safetensors");
  bytes.replace(bytes.size() - 2, 2, "\x80\x7f");  // infinity in bf16
  folder_.write("model.safetensors", bytes);
  const CommandResult result = run({"generate", "--model", folder_.path(), "--ids", "1"});
  EXPECT_EQ(result.status, kFailure);
  EXPECT_NE(result.err.find("NaN or infinity"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("`model.norm.weight`"), std::string::npos) << result.err;
}

TEST_F(ModelVerbs, ControlCEndsALongPromptBetweenTwoSteps) {
  folder_.edit("config.json", "\"max_position_embeddings\": 256",
               "\"max_position_embeddings\": 200000");
  std::string ids = "1";
  for (int i = 0; i < 60'000; ++i) ids += ",5";
  Command command(with(generate_, {"--ids", ids}));
  command.start();
  command.wait_until_it_handles_interrupts();
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  command.interrupt();
  const CommandResult result = command.finish();
  EXPECT_EQ(result.status, kInterrupted);
  if (result.out.empty()) return;  // it was still loading
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json.at("finish"), "stopped");
  EXPECT_EQ(json.at("ids").size(), 0U);
}

TEST_F(ModelVerbs, NobodyWaitsForAReplyThatCannotBeWritten) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this machine has no /dev/full";
  folder_.edit("config.json", "\"max_position_embeddings\": 256",
               "\"max_position_embeddings\": 100000");
  Command command({"generate", "--model", folder_.path(), "--prompt", "Hi", "--ignore-eos",
                   "--max-new-tokens", "99000"});
  command.out_to("/dev/full");
  command.start();
  const CommandResult result = command.finish();
  EXPECT_EQ(result.status, kFailure);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find("standard output cannot be written"), std::string::npos) << result.err;
}

TEST_F(ModelVerbs, ChatTakesLinesOfWindows) {
  folder_.write("unix", "Hello\nAnd more?\n\nnot this\n");
  folder_.write("windows", "Hello\r\nAnd more?\r\n\r\nnot this\r\n");
  std::vector<std::string> said;
  for (const char* file : {"unix", "windows"}) {
    Command command({"chat", "--model", folder_.path(), "--max-new-tokens", "4"});
    command.in_from(folder_ / file);
    command.start();
    said.push_back(command.finish().out);
  }
  EXPECT_NE(said[0], "");
  EXPECT_EQ(said[0], said[1]);
}

TEST_F(ModelVerbs, AFullDiskLeavesNoPartOfAFile) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this machine has no /dev/full";
  Command command(with(generate_, {"--ids", "1,2"}));
  command.out_to("/dev/full");
  command.start();
  const CommandResult result = command.finish();
  EXPECT_EQ(result.status, kFailure);
  EXPECT_NE(result.err.find("standard output cannot be written"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace tileweave::cli
