#include "tileweave/plan/verdict.h"

#include <algorithm>
#include <array>

#include "tileweave/core/error.h"
#include "tileweave/plan/node_words.h"

namespace tileweave {
namespace {

constexpr std::size_t kColumns = 8;
using Row = std::array<std::string, kColumns>;

Row row_of(const EdgeReport& edge, const Plan& plan) {
  const auto node = [&](NodeId id) {
    return label_of(id, plan.nodes()[static_cast<std::size_t>(id)]).text();
  };
  return {node(edge.from),
          node(edge.to),
          edge.tensor == kNoTensor ? "-" : quoted(plan.tensors()[edge.tensor]),
          name_of(edge.requested),
          name_of(edge.kind),
          name_of(edge.start),
          name_of(edge.ground),
          edge.why};
}

}  // namespace

const char* name_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kTooFewArrivals:
      return "too few arrivals";
    case FaultKind::kTooManyArrivals:
      return "too many arrivals";
    case FaultKind::kUncoveredRead:
      return "uncovered read";
    case FaultKind::kUnsatisfiedWait:
      return "unsatisfied wait";
    case FaultKind::kDoubleWrite:
      return "double write";
    case FaultKind::kTilingsDisagree:
      return "tilings disagree";
    case FaultKind::kOrderNotPermutation:
      return "order is not a permutation";
    case FaultKind::kBackwardWait:
      return "backward wait";
    case FaultKind::kBufferReusedEarly:
      return "buffer reused early";
    case FaultKind::kStarvation:
      return "starvation";
    case FaultKind::kBlockFitsNoSm:
      return "block fits no SM";
    case FaultKind::kStableReadOfWrittenBox:
      return "stable read of a written box";
    case FaultKind::kIndexOverflow:
      return "index overflow";
    case FaultKind::kSignalThroughView:
      return "signal through a view";
    case FaultKind::kUndeclaredWrite:
      return "undeclared write";
  }
  return "?";
}

const char* name_of(Ground ground) {
  switch (ground) {
    case Ground::kNone:
      return "none";
    case Ground::kNotNeeded:
      return "not needed";
    case Ground::kCapacity:
      return "capacity";
    case Ground::kCounted:
      return "counted";
    case Ground::kOrdered:
      return "ordered";
  }
  return "?";
}

const char* name_of(Release release) {
  switch (release) {
    case Release::kCompleted:
      return "completed";
    case Release::kProgrammatic:
      return "programmatic";
    case Release::kLaunchCompleted:
      return "launch completed";
    case Release::kAllBegun:
      return "all begun";
    case Release::kFirstBegun:
      return "first begun";
  }
  return "?";
}

std::int32_t Verdict::num_downgrades() const {
  return static_cast<std::int32_t>(
      std::count_if(edges.begin(), edges.end(), [](const EdgeReport& edge) {
        return edge.kind == EdgeKind::kFull && edge.requested != EdgeKind::kFull;
      }));
}

std::string Verdict::table(const Plan& plan) const {
  std::vector<Row> rows = {
      {"from", "to", "tensor", "requested", "edge", "start rule", "ground", "why"}};
  for (const EdgeReport& edge : edges) rows.push_back(row_of(edge, plan));
  std::array<std::size_t, kColumns> width = {};
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < kColumns; ++c) width[c] = std::max(width[c], row[c].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < kColumns; ++c) {
      line += row[c];
      if (c + 1 < kColumns) line += std::string(width[c] - row[c].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

void throw_if_faulty(const Verdict& verdict, const Plan& plan) {
  if (verdict.ok()) return;
  const std::size_t more = verdict.faults.size() - 1;
  std::string sentence = verdict.faults.front().sentence;
  if (more > 0) sentence += " (and " + counted(static_cast<std::int64_t>(more), "more fault") + ")";
  throw Error("verify plan `" + plan.options().name + "`", sentence);
}

}  // namespace tileweave
