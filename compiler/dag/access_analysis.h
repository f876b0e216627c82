// Static analysis of how the operators of a DAG read each other (facts §1.2). What sketch rules
// decide by.
//
// Of a DAG, which must outlive it. Each question is answered by looking: making one costs nothing.
// Cost: linear in the accesses of the operator asked about; of those between the two for what is
// asked of two.
#pragma once

#include <vector>

#include "compiler/dag/dag.h"

namespace kiln::dag {

class AccessAnalysis {
 public:
  explicit AccessAnalysis(const Dag& dag) : dag_(dag) {}

  // Every index of every read is an integer constant or a spatial axis plus or minus a constant.
  bool is_simple_access(int op) const { return FactsOf(op).simple; }
  // Simple, axes in order and none twice, no exp, no branch; an operator without reads always is, a
  // placeholder never.
  bool is_strictly_inlineable(int op) const { return FactsOf(op).strictly_inlineable; }
  // Two producers that do not use all spatial axes (of extent > 1), or one and a reduction.
  bool needs_multi_level_tiling(int op) const;
  // A reduction without such producers whose results, or windows of them, are consecutive where it
  // reads: an axis of them is in the last index of a read. Sums of columns, pooling.
  bool reduces_columns(int op) const;
  bool is_output(int op) const { return dag_.is_output(op); }

  // Leading dimensions that both operators enumerate alike, when one is upstream of the other; 0
  // when there is no path.
  int num_common_outer_iterators(int a, int b) const;

  // From op to target each step has one reader of the same shape that reads element by element.
  bool elementwise_match(int op, int target) const;

 private:
  struct OpFacts {
    bool simple = true, strictly_inlineable = false;
  };
  OpFacts FactsOf(int op) const;
  bool MissesAxes(int op, int producer) const;
  bool ReadsColumns(int op) const;
  int CommonLeading(int producer, int op) const;
  bool ReadsElementwise(int reader, int producer) const;

  const Dag& dag_;
};

// The axis number when e is an axis plus or minus an integer constant, else -1.
int ConstShiftedAxis(ir::Expr e);

}  // namespace kiln::dag
