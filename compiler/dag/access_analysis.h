// Static analysis of how the operators of a DAG read each other. Sketch rules decide by it. The
// predicates are those of AccessAnalyzer in TVM v0.14 (src/auto_scheduler/compute_dag.cc).
//
// The DAG must outlive the analysis. Nothing is computed beforehand. A question about one operator
// costs time linear in the operator's accesses. A question about two operators costs time linear in
// the accesses of the operators on the path between them.
#pragma once

#include <vector>

#include "compiler/dag/dag.h"

namespace kiln::dag {

class AccessAnalysis {
 public:
  explicit AccessAnalysis(const Dag& dag) : dag_(dag) {}

  // True if every index of every read is an integer constant or a spatial axis plus or minus a
  // constant.
  bool is_simple_access(int op) const { return FactsOf(op).simple; }
  // True if all accesses are simple and use the axes in order and none twice, and the body has no
  // exp and no branch. An operator without reads is always inlineable, a placeholder never.
  bool is_strictly_inlineable(int op) const { return FactsOf(op).strictly_inlineable; }
  // True if elements are reused: at least two producers, or one producer of a reduction, are read
  // by indices that lack some spatial axis (of extent > 1). For an operator of several outputs,
  // which TVM does not make of networks, producers that are read by the same axes count once (a
  // scale and a shift), and scalars do not count.
  bool needs_multi_level_tiling(int op) const;
  // True for other reductions that read consecutive elements for consecutive results: the last
  // index of a read has a spatial axis. Sums of columns and pooling are such reductions.
  bool reduces_columns(int op) const;
  bool is_output(int op) const { return dag_.is_output(op); }

  // Returns the number of leading dimensions that both operators enumerate alike if one is upstream
  // of the other, and 0 if there is no path between them.
  int num_common_outer_iterators(int a, int b) const;

  // True if every operator on the path from op to target has one reader, which has the same shape
  // and reads element by element.
  bool elementwise_match(int op, int target) const;
  // True if all paths from op lead to target, and every operator on them has the same shape and is
  // read element by element.
  bool elementwise_on_all_paths(int op, int target) const;

 private:
  struct OpFacts {
    bool simple = true, strictly_inlineable = false;
  };
  OpFacts FactsOf(int op) const;
  // Returns for each spatial axis of op whether an index of a read of the producer uses it.
  std::vector<bool> AxesReadBy(int op, int producer) const;
  bool ReadsColumns(int op) const;
  int CommonLeading(int producer, int op) const;
  bool ReadsElementwise(int reader, int producer) const;

  const Dag& dag_;
};

// Returns the axis number if e is an axis plus or minus an integer constant, else -1.
int ConstShiftedAxis(ir::Expr e);

}  // namespace kiln::dag
