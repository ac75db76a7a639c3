// AccessJudge: checks what one lane of a block does against what its node declared.
//
// Fed by the lane's hooks (which work, what was waited for, what was signalled) and by checking
// views (which elements are touched). Throws Error naming node, operand, box and work for: a read
// or write outside the work's declared kernel tiles, a read before the wait that covers it, an
// early read of something produced, a write after the signal, a wait or signal of an undeclared
// kernel tile, a work that ends without a signal it owes. A kernel that takes no context does not
// say which work it is at: its block may touch what any work of the block declares. One judge per
// lane; no shared state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/runtime/launch.h"
#include "tileweave/sync/context.h"

namespace tileweave::cpu {

class AccessJudge final : public AccessChecker {
 public:
  /// `context`: the bytes of the launch's SyncContext, or null when its kernel takes none. The
  /// launch must have its spec and tensors and outlive the judge.
  AccessJudge(const Launch& launch, const std::byte* context, std::int64_t block);

  void on_begin();
  void on_work(std::int64_t work);
  void on_grid_wait() { grid_waited_ = true; }
  void on_wait(int slot, const Coord& ktile);
  void on_signal(int slot, const Coord& ktile);
  /// The kernel has returned.
  void on_end();

  void on_read(int operand, const Box& box) override;
  void on_write(int operand, const Box& box) override;

 private:
  struct KernelTile {
    std::int64_t index;
    Box box;
    bool done = false;  // waited for (reads), signalled (writes)
  };
  struct Operand {
    const OperandSpec* spec;
    const Tensor* tensor;
    TileSet kernel_tiles;
    bool synchronised;              // carries a slot with semaphores behind it
    std::vector<KernelTile> tiles;  // of the current work
  };

  void begin_work(std::int64_t work);
  void add_tiles_of(std::int64_t work);
  void end_work() const;
  Operand& operand_of(int operand, const Box& box);
  int index_of_slot(int slot) const;
  KernelTile& declared_tile(int slot, const Coord& ktile, const char* verb);
  bool aborted() const;
  [[noreturn]] void refuse(int operand, const std::string& act, const std::string& expected) const;

  const Launch& launch_;
  const SyncHeader* header_ = nullptr;
  std::int64_t block_;
  std::int64_t work_ = 0;
  bool worked_ = false;  // the current work has waited, signalled or touched something
  bool grid_waited_ = false;
  std::vector<Operand> operands_;
};

/// Whether every element of `box` lies in at least one of `boxes`.
bool covered_by(const Box& box, const std::vector<Box>& boxes);

}  // namespace tileweave::cpu
