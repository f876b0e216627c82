// Combiners that a person wrote (compiler/dag/reduction.h) in Python: for te.comm_reducer, and for
// numpy.
//
// TVM stores the outputs of a reduction one after the other, and an update reads the new values of
// the outputs before it (MakeReduction of src/te/operation/compute_op.cc, to v0.19). An output
// whose old value others need is therefore updated after them. If outputs need each other, as those
// of a complex product do, TVM's operator has more outputs: copies of some old values, which are
// stored first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/dag/dag.h"

namespace kiln::schedule {

// An operator's outputs in TVM's order.
struct TvmOutputs {
  // Outputs that are copied, in the order of the copies, which come first.
  std::vector<int> copied;
  // All outputs, in the order in which they are updated.
  std::vector<int> updated;

  // Returns the place in TVM of output number `output`.
  int Place(int output) const;
};
TvmOutputs TvmOutputsOf(const dag::Operator& op);

// The written combiners of a computation, each once.
class PythonCombiners {
 public:
  explicit PythonCombiners(const dag::Dag& dag);

  bool empty() const { return combiners_.empty(); }
  // Returns the name by which reducer(...) and reduce_last(...) of the program know the operator's
  // combiner.
  std::string_view NameOf(const dag::Operator& op) const;
  // Returns definitions of functions, and of COMBINERS, which has by name the function of te, the
  // identities, and the function of numpy.
  std::string Definitions() const;

 private:
  struct Named {
    std::string name;
    // The first operator with this combiner.
    dag::OperatorPtr op;
  };
  std::vector<Named> combiners_;
};

}  // namespace kiln::schedule
