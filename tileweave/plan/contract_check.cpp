#include "tileweave/plan/contract_check.h"

#include <utility>

#include "tileweave/plan/launch_check.h"
#include "tileweave/plan/read_check.h"
#include "tileweave/plan/wait_check.h"
#include "tileweave/plan/write_check.h"

namespace tileweave {

class ContractChecker::Impl {
 public:
  Impl(const TensorTable& tensors, Report report) : run_(tensors), report_(report) {}

  std::vector<Fault> add(NodeId id, const NodeSpec& node) {
    std::vector<Fault> faults;
    const NodeLabel& label = run_.nodes.emplace_back(label_of(id, node));
    if (check_launch(label, node, faults) == Countable::kYes) {
      const std::vector<const UsedOperand*> operands = enumerate(label, node, faults);
      // Writes first: what the node reads of its own is seen when its reads are checked.
      for (const UsedOperand* operand : operands) {
        if (operand->tiles.spec().access == Access::kWrite) {
          record_write(run_, *operand, faults, overwrites_);
        }
      }
      for (const UsedOperand* operand : operands) {
        if (operand->tiles.spec().access == Access::kRead) record(*operand, faults);
      }
    }
    if (report_ == Report::kAtOnce) close(faults);
    for (const Fault& fault : faults) {
      if (fault.kind == FaultKind::kBackwardWait) backward_.push_back(fault);
    }
    return faults;
  }

  std::vector<Fault> finish() {
    // Backward waits are told already; they only keep their consequences from being told as well.
    std::vector<Fault> faults = backward_;
    close(faults);
    faults.erase(faults.begin(), faults.begin() + static_cast<std::ptrdiff_t>(backward_.size()));
    return faults;
  }

  const std::vector<DataEdge>& edges() const { return edges_; }
  const std::vector<Overwrite>& overwrites() const { return overwrites_; }

  std::vector<std::int64_t> arrivals(TensorId tensor) const {
    std::vector<std::int64_t> counts(
        static_cast<std::size_t>((*run_.tensors)[tensor].tiles.count()), 0);
    const auto id = static_cast<std::size_t>(tensor);
    if (id >= run_.uses.size() || run_.uses[id].tiles.empty()) return counts;
    for (std::size_t t = 0; t < counts.size(); ++t) counts[t] = run_.uses[id].tiles[t].arrivals;
    return counts;
  }

 private:
  std::vector<const UsedOperand*> enumerate(const NodeLabel& label, const NodeSpec& node,
                                            std::vector<Fault>& faults) {
    std::vector<const UsedOperand*> operands;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const Tensor& tensor = (*run_.tensors)[node.operands[i].tensor];
      auto tiles = enumerate_operand(label, node, i, tensor, faults);
      if (!tiles) continue;
      check_last_arrivers(label, node, *tiles, tensor, faults);
      run_.operands.push_back({&label, node.args, std::move(*tiles)});
      operands.push_back(&run_.operands.back());
    }
    return operands;
  }

  void record(const UsedOperand& read, std::vector<Fault>& faults) {
    OpenWaits waits = check_waits(run_, read, faults);
    if (!waits.tiles.empty()) open_waits_.push_back(std::move(waits));
    OpenReads reads = record_read(run_, read, faults, edges_);
    if (!reads.places.empty()) open_reads_.push_back(std::move(reads));
  }

  void close(std::vector<Fault>& faults) {
    for (const OpenWaits& open : open_waits_) close_waits(run_, open, faults);
    for (const OpenReads& open : open_reads_) close_reads(run_, open, faults);
    open_waits_.clear();
    open_reads_.clear();
  }

  RunUse run_;
  Report report_;
  std::vector<DataEdge> edges_;
  std::vector<Overwrite> overwrites_;
  std::vector<OpenWaits> open_waits_;
  std::vector<OpenReads> open_reads_;
  std::vector<Fault> backward_;
};

ContractChecker::ContractChecker(const TensorTable& tensors, Report report)
    : impl_(std::make_unique<Impl>(tensors, report)) {}
ContractChecker::~ContractChecker() = default;
ContractChecker::ContractChecker(ContractChecker&&) noexcept = default;
ContractChecker& ContractChecker::operator=(ContractChecker&&) noexcept = default;

std::vector<Fault> ContractChecker::add(NodeId id, const NodeSpec& node) {
  return impl_->add(id, node);
}
std::vector<Fault> ContractChecker::finish() {
  return impl_->finish();
}
const std::vector<DataEdge>& ContractChecker::edges() const {
  return impl_->edges();
}
const std::vector<Overwrite>& ContractChecker::overwrites() const {
  return impl_->overwrites();
}
std::vector<std::int64_t> ContractChecker::arrivals(TensorId tensor) const {
  return impl_->arrivals(tensor);
}

ContractReport check_contract(const Plan& plan) {
  ContractChecker checker(plan.tensors(), Report::kAtFinish);
  ContractReport report;
  const auto append = [&](std::vector<Fault> faults) {
    report.faults.insert(report.faults.end(), faults.begin(), faults.end());
  };
  for (std::size_t n = 0; n < plan.nodes().size(); ++n) {
    append(checker.add(static_cast<NodeId>(n), plan.nodes()[n]));
  }
  append(checker.finish());
  report.edges = checker.edges();
  report.overwrites = checker.overwrites();
  return report;
}

}  // namespace tileweave
