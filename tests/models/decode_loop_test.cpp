#include "tileweave/models/decode_loop.h"

#include <gtest/gtest.h>

#include "tests/models/tiny_models.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

constexpr std::size_t kSteps = 20;

/// Greedy tokens of two prompts, one step() at a time: (steps, 2).
std::vector<std::int32_t> tokens_of_steps(Decoder& decoder, const Golden& golden) {
  std::vector<KvCache::SequenceId> sequences;
  std::vector<std::int32_t> next, all;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::vector<std::int32_t>& prompt = golden.greedy[i].prompt;
    sequences.push_back(decoder.add_sequence());
    prefill(decoder, sequences[i], std::span(prompt).first(prompt.size() - 1));
    next.push_back(prompt.back());
  }
  for (std::size_t step = 0; step < kSteps; ++step) {
    next = decode_step(decoder, sequences, next);
    all.insert(all.end(), next.begin(), next.end());
  }
  for (const KvCache::SequenceId sequence : sequences) decoder.remove_sequence(sequence);
  return all;
}

TEST(DecodeLoop, ChoosesTheTokensOfSteps) {
  for (const char* name : {"llama3", "qwen3"}) {
    std::string folder;
    for (const std::string& known : tiny_model_names()) {
      if (known.find(name) != std::string::npos) folder = known;
    }
    if (folder.empty()) folder = tiny_model_names().front();
    const Golden golden = read_golden(folder);
    for (const Mode mode : {Mode::kSerial, Mode::kOverlap}) {
      SCOPED_TRACE(testing::Message() << folder << (mode == Mode::kSerial ? ", serial" : ""));
      TinyModel model = open_tiny_model(
          folder, {.decoder = {.run = {.mode = mode}, .max_tokens = 64, .cache_tokens = 320}});
      Decoder& decoder = *model.decoder;
      const std::vector<std::int32_t> expected = tokens_of_steps(decoder, golden);
      DecodeLoop loop(decoder, {.run = {.mode = mode}, .rows = 2, .ring_length = 8});
      std::vector<KvCache::SequenceId> sequences;
      std::vector<std::int32_t> last, lengths;
      for (std::size_t i = 0; i < 2; ++i) {
        const std::vector<std::int32_t>& prompt = golden.greedy[i].prompt;
        sequences.push_back(decoder.add_sequence());
        prefill(decoder, sequences[i], std::span(prompt).first(prompt.size() - 1));
        last.push_back(prompt.back());
        lengths.push_back(static_cast<std::int32_t>(decoder.length(sequences[i])));
      }
      for (int round = 0; round < 2; ++round) {  // finish(0) has forgotten the first
        loop.start(sequences, last, kSteps);
        loop.enqueue(4);
        std::vector<std::int32_t> found = loop.wait();
        loop.enqueue(2);
        while (loop.steps_enqueued() < static_cast<std::int64_t>(kSteps)) {
          loop.enqueue(1);
          const std::vector<std::int32_t> next = loop.next();
          found.insert(found.end(), next.begin(), next.end());
        }
        const std::vector<std::int32_t> rest = loop.wait();
        found.insert(found.end(), rest.begin(), rest.end());
        EXPECT_EQ(found, expected);
        loop.finish(round == 0 ? 0 : 7);
      }
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(decoder.length(sequences[i]), lengths[i] + 7);
        EXPECT_EQ(decode_step(decoder, std::span(sequences).subspan(i, 1),
                              std::span(expected).subspan(12 + i, 1))[0],
                  expected[14 + i])
            << "and a step goes on from there";
      }
    }
  }
}

TEST(DecodeLoop, RefusesMoreThanItWasToldOf) {
  TinyModel model = open_tiny_model(tiny_model_names().front(), {.decoder = {.max_tokens = 32}});
  DecodeLoop loop(*model.decoder, {.rows = 1, .ring_length = 4});
  const KvCache::SequenceId sequence = model.decoder->add_sequence();
  const std::vector<std::int32_t> id = {1};
  EXPECT_THROW(loop.enqueue(1), Error);
  EXPECT_THROW(loop.start({&sequence, 1}, id, 33), Error) << "beyond the limit of a sequence";
  loop.start({&sequence, 1}, id, 6);
  EXPECT_THROW(loop.enqueue(5), Error) << "beyond the ring";
  EXPECT_THROW(loop.enqueue(7), Error) << "beyond what start() was told";
  EXPECT_THROW(loop.start({&sequence, 1}, id, 6), Error) << "twice";
  loop.enqueue(1);
  loop.finish(1);
  EXPECT_EQ(model.decoder->length(sequence), 1);
}

}  // namespace
}  // namespace tileweave
