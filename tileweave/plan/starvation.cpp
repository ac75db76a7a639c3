#include "tileweave/plan/starvation.h"

#include <algorithm>
#include <map>

#include "tileweave/plan/node_words.h"

namespace tileweave {
namespace {

/// More combinations of flights than this are joined into one, which is never smaller than any.
constexpr std::size_t kMaxCombinations = 512;

}  // namespace

std::string StarvationSearch::name(NodeId id) const {
  return label_of(id, spec(id)).text();
}

void StarvationSearch::schedule(NodeId id, const ScheduledNode& node) {
  const auto index = static_cast<std::size_t>(id);
  if (index == known_.size()) known_.emplace_back();
  Known known;
  known.rank = spec(id).rank;
  known.stream = node.stream;
  if (!options_.device_of_rank.empty()) {
    known.device = options_.device_of_rank.at(static_cast<std::size_t>(known.rank));
  }
  for (const WorkGraph::Producer& producer : order_->works().producers(id)) {
    known.last_wait = std::max(known.last_wait, producer.node);
  }
  for (const Dependency& dependency : node.after) {
    if (dependency.release == Release::kProgrammatic) {
      known.programmatic = true;
      known.last_wait = std::max(known.last_wait, dependency.on);
    }
    if (dependency.release == Release::kAllBegun || dependency.release == Release::kFirstBegun) {
      known.has_wait_kernel = true;
    }
  }
  for (NodeId k = id - 1; k >= 0 && (known.pred < 0 || known.stream_pred < 0); --k) {
    if (at(k).rank != known.rank) continue;
    if (known.pred < 0) known.pred = k;
    if (known.stream_pred < 0 && at(k).stream == known.stream) known.stream_pred = k;
  }
  known_[index] = known;
}

bool StarvationSearch::has_begun(NodeId i, NodeId j) const {
  return order_->begun(i, j) ||
         (options_.launch_order == LaunchOrder::kTrusted && order_->trusted_begun(i, j));
}

/// The wait kernel of `j` follows the completion of the node before it on its stream, and nothing
/// else is known of when it begins.
bool StarvationSearch::wait_kernel_in_flight(NodeId i, NodeId j) const {
  const Known& waiter = at(j);
  if (!waiter.has_wait_kernel || waiter.pred < i) return false;
  const NodeId before = waiter.stream_pred;
  return before < 0 || (before != i && !order_->complete(i, before) && !has_begun(i, before));
}

/// Whether nothing of `x` can be resident when `j`, or its wait kernel, is: it is complete, or will
/// be without waiting for anything more.
bool StarvationSearch::is_gone(NodeId x, NodeId j, What what) const {
  if (what == What::kNode) {
    return order_->complete(x, j) || (order_->done(x, j) && order_->begun(x, j));
  }
  const NodeId before = at(j).stream_pred;
  return before >= 0 && (x == before || order_->complete(x, before));
}

StarvationSearch::Flight StarvationSearch::wait_kernel_flight() const {
  return {.nodes = {}, .waiting = {}, .num_wait_kernels = 1, .shape = {-1}};
}

StarvationSearch::Flight StarvationSearch::launch_flight(NodeId i, NodeId last, NodeId beside,
                                                         What what) const {
  Flight flight;
  for (NodeId k = last; k > i; k = at(k).pred) {
    if (k != last && (is_gone(k, beside, what) || has_begun(i, k))) break;
    flight.nodes.push_back(k);
    const bool waits = at(k).last_wait >= i;
    if (waits) flight.waiting.push_back(k);
    const KernelResources& r = spec(k).resources;
    flight.shape.insert(flight.shape.end(), {r.threads, r.registers_per_thread, r.shared_bytes,
                                             blocks_of(spec(k)), waits ? 1 : 0});
    if (!at(k).programmatic) break;
  }
  return flight;
}

std::vector<std::vector<StarvationSearch::Flight>> StarvationSearch::flights_beside(
    NodeId i, NodeId j, What what) const {
  using Stream = std::pair<std::int32_t, std::int32_t>;
  const Stream of_i = {at(i).rank, at(i).stream};
  const Stream of_j = {at(j).rank, at(j).stream};
  std::map<Stream, std::map<std::vector<std::int64_t>, Flight>> streams;
  for (NodeId x = i + 1; x < j; ++x) {
    const Stream stream = {at(x).rank, at(x).stream};
    if (stream == of_i || stream == of_j || at(x).device != at(i).device) continue;
    if (is_gone(x, j, what)) continue;
    if (!has_begun(i, x)) {
      Flight flight = launch_flight(i, x, j, what);
      streams[stream].try_emplace(flight.shape, std::move(flight));
    }
    if (wait_kernel_in_flight(i, x)) {
      Flight flight = wait_kernel_flight();
      streams[stream].try_emplace(flight.shape, std::move(flight));
    }
  }
  std::vector<std::vector<Flight>> choices;
  for (auto& [stream, flights] : streams) {
    choices.emplace_back();
    for (auto& [shape, flight] : flights) choices.back().push_back(std::move(flight));
  }
  return choices;
}

StarvationSearch::Finding StarvationSearch::search(NodeId i, NodeId j, What what) {
  if (at(i).device != at(j).device) return {};
  if (what == What::kWaitKernel && !wait_kernel_in_flight(i, j)) return {};
  if (what == What::kNode && (order_->complete(i, j) || has_begun(i, j))) return {};
  const Flight own = what == What::kNode ? launch_flight(i, j, j, what) : wait_kernel_flight();
  const auto join = [](Flight& flight, const Flight& other) {
    flight.nodes.insert(flight.nodes.end(), other.nodes.begin(), other.nodes.end());
    flight.waiting.insert(flight.waiting.end(), other.waiting.begin(), other.waiting.end());
    flight.num_wait_kernels += other.num_wait_kernels;
  };

  const std::vector<std::vector<Flight>> choices = flights_beside(i, j, what);
  std::size_t num_combinations = 1;
  for (const auto& flights : choices) {
    num_combinations = std::min(num_combinations * flights.size(), kMaxCombinations + 1);
  }
  if (num_combinations > kMaxCombinations) {
    Flight all = own;
    for (const auto& flights : choices) {
      for (const Flight& flight : flights) join(all, flight);
    }
    return judge(i, all);
  }
  Finding worst;
  for (std::size_t c = 0; c < num_combinations; ++c) {
    Flight flight = own;
    std::size_t rest = c;
    for (const auto& flights : choices) {
      join(flight, flights[rest % flights.size()]);
      rest /= flights.size();
    }
    Finding finding = judge(i, flight);
    if (finding.starves) return finding;
    if (finding.blocked > worst.blocked) worst = std::move(finding);
  }
  return worst;
}

StarvationSearch::Finding StarvationSearch::judge(NodeId i, const Flight& flight) {
  if (flight.waiting.empty() && flight.num_wait_kernels == 0) return {};
  const std::int64_t num_sms = options_.device.num_sms;
  const std::string sms = std::to_string(num_sms) + (num_sms == 1 ? " SM" : " SMs");
  const auto blocked_for = [&](NodeId need) {
    std::vector<Crowd> crowds;
    for (const NodeId k : flight.waiting) {
      const std::int64_t blocks = blocks_of(spec(k)) - (k == need ? 1 : 0);
      crowds.push_back({spec(k).resources, blocks});
    }
    const bool is_in_flight = need < 0 && !at(i).has_wait_kernel;
    crowds.push_back({kWaitKernelResources, flight.num_wait_kernels - (is_in_flight ? 1 : 0)});
    return residency_.blocked_sms(need >= 0 ? spec(need).resources : kWaitKernelResources, crowds);
  };

  Finding finding;
  finding.blocked = blocked_for(i);
  if (finding.blocked >= num_sms) {
    finding.starves = true;
    finding.sentence = crowd_text(flight) + " can leave no SM for a block of " + name(i) + ": " +
                       sms + fill_text(spec(i).resources, flight);
    return finding;
  }
  finding.sentence = std::to_string(num_sms - finding.blocked) + " of " + sms +
                     " keep room for a block of " + name(i) + " beside " + crowd_text(flight);
  // The device may take launches in any order: one that is in flight and finds no room must not
  // stand before the first unfinished one.
  for (const NodeId k : flight.nodes) {
    if (blocked_for(k) < num_sms) continue;
    finding.starves = true;
    finding.sentence = "not all " + counted(blocks_of(spec(k)), "block") + " of " + name(k) +
                       " surely find an SM beside " + crowd_text(flight) + " (" + sms +
                       fill_text(spec(k).resources, flight) + "), and " + name(i) +
                       " may queue behind it";
    return finding;
  }
  const bool wait_kernel_needs_room = at(i).has_wait_kernel || flight.num_wait_kernels > 0;
  if (wait_kernel_needs_room && blocked_for(-1) >= num_sms) {
    finding.starves = true;
    finding.sentence = crowd_text(flight) + " can leave no SM for a wait kernel: " + sms +
                       fill_text(kWaitKernelResources, flight) + ", and " + name(i) +
                       " may queue behind it";
  }
  return finding;
}

std::string StarvationSearch::crowd_text(const Flight& flight) const {
  std::string text;
  for (const NodeId k : flight.waiting) {
    if (!text.empty()) text += " and ";
    text += counted(blocks_of(spec(k)), "block") + " of " + name(k);
  }
  if (flight.num_wait_kernels > 0) {
    if (!text.empty()) text += " and ";
    text += counted(flight.num_wait_kernels, "wait kernel");
  }
  return text;
}

/// ", 1 block of node 2 `c` fills one": how many blocks of each kernel alone fill an SM.
std::string StarvationSearch::fill_text(const KernelResources& need, const Flight& flight) const {
  std::string text;
  const auto add = [&](const std::string& of, const KernelResources& crowd) {
    const std::int64_t fewest = residency_.blocks_to_block(need, crowd);
    if (fewest > 0) {
      text += ", " + counted(fewest, "block") + of + (fewest == 1 ? " fills one" : " fill one");
    }
  };
  for (const NodeId k : flight.waiting) add(" of " + name(k), spec(k).resources);
  if (flight.num_wait_kernels > 0) add(" of a wait kernel", kWaitKernelResources);
  return text;
}

}  // namespace tileweave
