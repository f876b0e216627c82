// Index expressions of one store, evaluated at many points at once.
//
// For a store inside n loops an expression has, in one array:
//   lo[0..n], hi[0..n]   its range while the loops from level L inward vary and those outside are
//                        fixed at 0, as an arith::Interval; level n is one point
//   steps[0..n)          its value after only loop d has made one step from 0
//   lanes[0..w)          its values in the threads of a full warp, other loops in mid-flight
//   samples[0..s)        its values at iterations of some loops, all of them or spread evenly
// Loads (indices that are data) take any value below the limit of their buffer, and the same value
// wherever their own indices are the same.
//
// Values are valid until the next Begin. One thread. Cost: some tens of nanoseconds per distinct
// node; about 200 for quotients and remainders by a divisor that is no power of two.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compiler/arith/interval.h"
#include "compiler/ir/program.h"

namespace kiln::features {

struct EnclosingLoop {
  int32_t var;
  int64_t extent;
  ir::LoopKind kind;
};

struct IndexValue {
  // Bit d is set if the value depends on loop d. Bit 63 stands for that loop and deeper ones.
  uint64_t loops = 0;
  const int64_t* at = nullptr;
};

class IndexValues {
 public:
  static constexpr int kMaxSamples = 512;

  explicit IndexValues(const ir::Program& program);

  // `block` has the threads of a block, {1, 1, 1} for a CPU. `loops` go from outermost to
  // innermost. There are no samples.
  void Begin(std::span<const EnclosingLoop> loops, const std::array<int64_t, 3>& block);
  // Begins again with the same loops, without lanes. Samples the iterations of the loops whose bit
  // is set in `sampled_loops`, with the others fixed: all iterations if they are few, else
  // kMaxSamples of them.
  void BeginSamples(uint64_t sampled_loops);

  // Evaluates an integer or bool expression.
  IndexValue Of(ir::Expr e);

  // Positions in IndexValue::at.
  int lo(int level) const { return level; }
  int hi(int level) const { return num_loops_ + 1 + level; }
  int base() const { return num_loops_; }
  int step(int loop) const { return 2 * (num_loops_ + 1) + loop; }
  int lane(int i) const { return 3 * num_loops_ + 2 + i; }
  int sample(int i) const { return 3 * num_loops_ + 2 + num_lanes_ + i; }
  int num_loops() const { return num_loops_; }
  int num_lanes() const { return num_lanes_; }
  int num_samples() const { return num_samples_; }
  int size() const { return size_; }

  // Returns an array of size() elements for results.
  int64_t* Allocate();

 private:
  struct Entry {
    ir::Expr e = nullptr;
    uint32_t generation = 0;
    IndexValue value;
  };

  arith::Interval Range(IndexValue value, int level) const {
    return arith::Interval::Of(value.at[lo(level)], value.at[hi(level)]);
  }
  // Sets the range at each level to of_ranges(range of a, range of b). Level 0 contains all others:
  // if its result is bounded, no end of the others is too large, and monotonic results were
  // computed like values.
  template <typename OfRanges>
  void SetRanges(int64_t* out, IndexValue a, IndexValue b, OfRanges of_ranges) const;

  IndexValue Compute(ir::Expr e);
  IndexValue Variable(ir::Expr e);
  IndexValue Constant(int64_t value);
  IndexValue Data(ir::Expr e);
  // Returns the number that the data stay below: the limit of the buffer, else that of a buffer
  // that the expression reads.
  int64_t LimitOf(ir::Expr e) const;
  IndexValue DivideBy(IndexValue a, int64_t c);
  IndexValue RemainderBy(IndexValue a, int64_t c);
  IndexValue Arithmetic(ir::Op op, IndexValue a, IndexValue b);
  IndexValue Compare(ir::Expr e);
  IndexValue Choose(ir::Expr e);
  Entry& Find(ir::Expr e);
  void GrowTable();
  void Restart();
  void FillSamples(int depth, int64_t* out) const;

  const ir::Program& program_;
  std::vector<EnclosingLoop> loops_;
  std::array<int64_t, 3> block_ = {1, 1, 1};
  std::vector<int32_t> depth_of_var_;
  int num_loops_ = 0, num_lanes_ = 0, num_samples_ = 0, size_ = 0;
  // Indexed by loop: the number of samples after which the loop takes its next iteration. 0: the
  // loop is fixed. If there are fewer samples than iterations, any other number only says that the
  // loop varies.
  std::vector<int64_t> period_;
  bool samples_are_all_ = false;
  std::vector<Entry> table_;
  size_t entries_ = 0;
  uint32_t generation_ = 0;
  std::vector<std::unique_ptr<int64_t[]>> blocks_;
  size_t block_index_ = 0, block_used_ = 0;
};

}  // namespace kiln::features
