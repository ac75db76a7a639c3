// The decode loop's step on the emulated device.
#include "tests/kernels/sampling/advance_chain.h"

namespace tileweave {
namespace {

TEST(AdvanceCpu, AChainOfRunsDecodesWithoutTheHost) {
  const auto device = open_cpu_device({.num_sms = 2});
  add_sampling_cpu(device->kernels());
  expect_advances_in_every_mode(*device, make_advance_cpu);
}

TEST(AdvanceCpu, RefusesWhatIsMissing) {
  std::int32_t word = 0;
  std::uint32_t count = 0;
  const AdvanceArgs good{.rows = 1,
                         .next = &word,
                         .ids = &word,
                         .positions = &word,
                         .past = &word,
                         .slots = &word,
                         .page_table = &word,
                         .max_pages = 1,
                         .page_size = 16,
                         .tokens = &word,
                         .step = &count,
                         .ring_length = 1};
  EXPECT_NO_THROW(make_advance_cpu(good));
  const auto refused = [&](auto change) {
    AdvanceArgs bad = good;
    change(bad);
    EXPECT_THROW(make_advance_cpu(bad), Error);
  };
  refused([](AdvanceArgs& a) { a.next = nullptr; });
  refused([](AdvanceArgs& a) { a.tokens = nullptr; });
  refused([](AdvanceArgs& a) { a.step = nullptr; });
  refused([](AdvanceArgs& a) { a.rows = 0; });
  refused([](AdvanceArgs& a) { a.page_size = 0; });
  refused([](AdvanceArgs& a) { a.ring_length = 0; });
  refused([](AdvanceArgs& a) { a.max_pages = 1 << 30; });
  refused([&](AdvanceArgs& a) { a.history = &word; });
}

}  // namespace
}  // namespace tileweave
