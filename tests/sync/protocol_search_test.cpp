#include "tests/sync/protocol_search.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

namespace tileweave {
namespace {

using testing::AbortSource;
using testing::ProtocolFault;
using testing::search_protocol;
using testing::SearchOptions;
using testing::SearchResult;

constexpr std::uint32_t kSigned = 0x7fffffffU;  // 2^31 - 1
constexpr std::uint32_t kWhole = 0xffffffffU;   // 2^32 - 1

std::string path_of(const SearchResult& result) {
  std::ostringstream text;
  text << result.violation << " after " << result.states << " states:";
  for (const std::string& step : result.path) text << "\n  " << step;
  return text.str();
}

SearchResult search(const SearchOptions& options) {
  const SearchResult result = search_protocol(options);
  std::cout << name_of(options.fault) << ", start count " << options.start_count << ": "
            << (result.ok() ? "holds" : result.violation) << "; " << result.states << " states, "
            << result.transitions << " transitions, " << result.complete_ends << " complete and "
            << result.aborted_ends << " aborted ends\n";
  return result;
}

void expect_found(const SearchOptions& options, const std::string& rule) {
  const SearchResult result = search(options);
  EXPECT_EQ(result.violation, rule) << name_of(options.fault) << ": " << path_of(result);
  EXPECT_FALSE(result.path.empty());
}

constexpr const char* kUnseen = "a read is not ordered after the writes it must see";
constexpr const char* kReused = "a write is not ordered after the last run's accesses";

TEST(ProtocolSearch, TheProtocolHoldsInEveryInterleaving) {
  for (const std::uint32_t start : {0U, kSigned, kSigned - 3, kWhole, kWhole - 3}) {
    const SearchResult result = search({.start_count = start});
    EXPECT_TRUE(result.ok()) << "start count " << start << ": " << path_of(result);
    EXPECT_GT(result.states, 1000U);
    EXPECT_GT(result.complete_ends, 0U);
    EXPECT_EQ(result.aborted_ends, 0U);
  }
}

TEST(ProtocolSearch, TheProtocolHoldsWithAbortsAtAnyMoment) {
  for (const std::uint32_t start : {kSigned, kWhole}) {
    const SearchResult result =
        search({.start_count = start, .aborts = AbortSource::kDeadlineOrHost});
    EXPECT_TRUE(result.ok()) << "start count " << start << ": " << path_of(result);
    EXPECT_GT(result.complete_ends, 0U);
    EXPECT_GT(result.aborted_ends, 0U);
  }
}

TEST(ProtocolSearch, FindsASignalWithoutRelease) {
  expect_found({.fault = ProtocolFault::kSignalWithoutRelease}, kUnseen);
}

TEST(ProtocolSearch, FindsAPollWithoutAcquire) {
  expect_found({.fault = ProtocolFault::kPollWithoutAcquire}, kUnseen);
}

TEST(ProtocolSearch, FindsAMissingBlockBarrierBeforeTheSignal) {
  expect_found({.fault = ProtocolFault::kNoBarrierBeforeSignal}, kUnseen);
}

TEST(ProtocolSearch, FindsAMissingBlockBarrierAfterTheWait) {
  expect_found({.fault = ProtocolFault::kNoBarrierAfterWait}, kUnseen);
}

TEST(ProtocolSearch, FindsEarlyReuse) {
  expect_found({.fault = ProtocolFault::kEarlyReuse}, kReused);
}

TEST(ProtocolSearch, FindsComparesThatBreakAtTheWrap) {
  expect_found({.start_count = kWhole, .fault = ProtocolFault::kUnsignedCompare}, kUnseen);
  expect_found({.start_count = kSigned, .fault = ProtocolFault::kSignedCompare}, kUnseen);
  // Away from the wrap they are right, which is why a test from zero would not find them.
  EXPECT_TRUE(search({.start_count = 0, .fault = ProtocolFault::kUnsignedCompare}).ok());
  EXPECT_TRUE(search({.start_count = kWhole, .fault = ProtocolFault::kSignedCompare}).ok());
}

TEST(ProtocolSearch, FindsABaseUpdateBeforeTheLastWait) {
  const SearchResult result = search({.fault = ProtocolFault::kEarlyBaseUpdate});
  EXPECT_TRUE(result.violation == "a base read is not ordered after its update" ||
              result.violation == "a base update is not ordered after the waits")
      << path_of(result);
}

TEST(ProtocolSearch, FindsABaseThatNeverMoves) {
  expect_found({.fault = ProtocolFault::kNoBaseUpdate}, kUnseen);
}

TEST(ProtocolSearch, FindsADoubleSignal) {
  expect_found({.fault = ProtocolFault::kDoubleSignal}, kUnseen);
}

TEST(ProtocolSearch, FindsTheHangOfALostSignal) {
  expect_found({.fault = ProtocolFault::kLostSignal}, "nobody can move: deadlock");
}

TEST(ProtocolSearch, EndsALostSignalWithOneReportInEveryInterleaving) {
  const SearchResult result =
      search({.fault = ProtocolFault::kLostSignal, .aborts = AbortSource::kDeadline});
  EXPECT_TRUE(result.ok()) << path_of(result);
  EXPECT_GT(result.aborted_ends, 0U);
  EXPECT_GT(result.complete_ends, 0U) << "recover() makes the second run complete";
}

TEST(ProtocolSearch, FindsAReadAfterAFailedWait) {
  expect_found({.fault = ProtocolFault::kReadAfterFailedWait, .aborts = AbortSource::kDeadline},
               kUnseen);
}

TEST(ProtocolSearch, FindsASignalAfterAFailedWait) {
  expect_found({.fault = ProtocolFault::kSignalAfterFailedWait, .aborts = AbortSource::kDeadline},
               "a block that gave up its wait signalled");
}

TEST(ProtocolSearch, FindsABlockThatDoesNotAgreeOnTheAbort) {
  const SearchResult result =
      search({.fault = ProtocolFault::kAbortSeenByOneLane, .aborts = AbortSource::kDeadline});
  EXPECT_FALSE(result.ok());
}

TEST(ProtocolSearch, FindsTwoReports) {
  expect_found({.fault = ProtocolFault::kReportWithoutClaim, .aborts = AbortSource::kDeadline},
               "two waiters wrote the hang report");
}

TEST(ProtocolSearch, ModelsStatementsThatAreInTheLibrary) {
  for (const testing::ModelledStatement& modelled : testing::kModelledStatements) {
    std::ifstream file(std::string(TW_SOURCE_DIR) + "/tileweave/" + modelled.file);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_NE(text.str().find(modelled.text), std::string::npos)
        << "the step '" << modelled.step << "' stands for a statement that " << modelled.file
        << " no longer has: " << modelled.text;
  }
}

}  // namespace
}  // namespace tileweave
