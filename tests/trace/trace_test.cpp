#include "tileweave/trace/trace.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/trace/example_traces.h"
#include "tileweave/core/error.h"

namespace tileweave {
namespace {

std::string refusal_of(const std::function<void(Trace&)>& spoil) {
  Trace trace = testing::figure1_overlap();
  spoil(trace);
  try {
    check_trace(trace);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_names(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" lacks \"" << part << "\"";
}

TEST(Trace, AcceptsAnOrdinaryRun) {
  EXPECT_EQ(refusal_of([](Trace&) {}), "");
}

TEST(Trace, NamesTheRecordWhoseTimesRunBackwards) {
  expect_names(refusal_of([](Trace& t) { t.records[5].end_ns = 0; }), "record 5");
  expect_names(refusal_of([](Trace& t) { t.records[6].wait_ns = 1; }), "begin 2, wait 1");
  expect_names(refusal_of([](Trace& t) { t.records[6].ready_ns = 9; }), "ready 9, end 3");
  expect_names(refusal_of([](Trace& t) { t.records[6].signal_ns = 4; }), "signal 4, end 3");
}

TEST(Trace, NamesWhatARecordPointsAtInVain) {
  expect_names(refusal_of([](Trace& t) { t.records[2].node = 7; }), "position 7 on rank 0");
  expect_names(refusal_of([](Trace& t) { t.records[2].rank = 1; }), "position 0 on rank 1");
  expect_names(refusal_of([](Trace& t) { t.records[2].sm = 3; }), "SM 3");
  expect_names(refusal_of([](Trace& t) {
                 t.num_sms = 0;
                 t.records[2].sm = 0xFFFFFFFF;
               }),
               "SM 4294967295");
  expect_names(refusal_of([](Trace& t) { t.arrows[1].to_record = 8; }), "arrow 1");
  expect_names(refusal_of([](Trace& t) { t.arrows[1].tensor = 1; }), "tensor 1");
}

TEST(Trace, WantsToKnowTheClock) {
  expect_names(refusal_of([](Trace& t) { t.clock = ""; }), "clock");
  expect_names(refusal_of([](Trace& t) { t.clock = "guessed"; }), "guessed");
}

TEST(Trace, RefusesTwoNodesAtOnePosition) {
  expect_names(refusal_of([](Trace& t) { t.nodes[1].position = 0; }), "GEMM X and GEMM Y");
}

TEST(Trace, RefusesARunTooLongToShowExactly) {
  const auto stretch_to = [](std::uint64_t end) {
    return [end](Trace& t) { t.records[7].end_ns = end; };
  };
  EXPECT_EQ(refusal_of(stretch_to(kMaxRunSpan)), "");
  expect_names(refusal_of(stretch_to(kMaxRunSpan + 1)), "9007199254740993");
}

TEST(Trace, AddsArrowsOnlyBetweenThingsThatExist) {
  Trace trace = testing::figure1_overlap();
  EXPECT_EQ(trace.tensor_id("X"), 0u);
  EXPECT_EQ(trace.tensor_id("another"), 1u);
  EXPECT_NO_THROW(trace.add_arrow(0, 7, 1, 3));
  EXPECT_THROW(trace.add_arrow(8, 0, 0, 0), Error);
  EXPECT_THROW(trace.add_arrow(0, 8, 0, 0), Error);
  EXPECT_THROW(trace.add_arrow(0, 1, 2, 0), Error);
}

TEST(WaitSpan, TellsWaitingFromNeverWaitingAndFromGivingUp) {
  TileRecord record{.node = 0,
                    .rank = 0,
                    .work = 0,
                    .sm = 0,
                    .begin_ns = 10,
                    .wait_ns = 0,
                    .ready_ns = 0,
                    .signal_ns = 0,
                    .end_ns = 50};
  EXPECT_EQ(wait_span(record).duration(), 0u);
  record.wait_ns = 20;
  EXPECT_EQ(wait_span(record).duration(), 30u) << "given up: lasts until the end";
  record.ready_ns = 26;
  EXPECT_EQ(wait_span(record).duration(), 6u);
  record.begin_ns = record.wait_ns = 0;
  EXPECT_EQ(wait_span(record).duration(), 26u) << "entered at time 0 of a virtual clock";
}

}  // namespace
}  // namespace tileweave
