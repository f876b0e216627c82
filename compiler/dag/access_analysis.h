// Static analysis of how the operators of a DAG read each other. Sketch rules decide by it. The
// predicates are those of AccessAnalyzer in TVM v0.14 (src/auto_scheduler/compute_dag.cc).
//
// The DAG must outlive it. Nothing is computed beforehand. Cost of a question: linear in the
// accesses of the operator; of a question about two operators, in the accesses of those on the path
// between them.
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
  // Two producers are read by indices without some spatial axis (of extent > 1), or one is and the
  // operator is a reduction: elements are reused. Of an operator of several outputs, which TVM does
  // not make of networks, producers that are read by the same axes count once (a scale and a shift),
  // scalars not at all.
  bool needs_multi_level_tiling(int op) const;
  // Another reduction that reads consecutive elements for consecutive results: a spatial axis is in
  // the last index of a read. Sums of columns and pooling are such reductions.
  bool reduces_columns(int op) const;
  bool is_output(int op) const { return dag_.is_output(op); }

  // Leading dimensions that both operators enumerate alike, when one is upstream of the other; 0
  // when there is no path.
  int num_common_outer_iterators(int a, int b) const;

  // On the path from op to target every operator has one reader, which has the same shape and reads
  // element by element.
  bool elementwise_match(int op, int target) const;

 private:
  struct OpFacts {
    bool simple = true, strictly_inlineable = false;
  };
  OpFacts FactsOf(int op) const;
  // By spatial axis of op: does an index of a read of the producer have it?
  std::vector<bool> AxesReadBy(int op, int producer) const;
  bool ReadsColumns(int op) const;
  int CommonLeading(int producer, int op) const;
  bool ReadsElementwise(int reader, int producer) const;

  const Dag& dag_;
};

// The axis number when e is an axis plus or minus an integer constant, else -1.
int ConstShiftedAxis(ir::Expr e);

}  // namespace kiln::dag
