// Combiners that a person wrote (compiler/dag/reduction.h) in Python: for te.comm_reducer, and for
// numpy.
//
// TVM stores the outputs of a reduction one after the other, and an update reads what those before
// it have stored (MakeReduction of src/te/operation/compute_op.cc, to v0.19). So what others need
// as it was is updated after them. Where outputs need each other, as those of a complex product do,
// TVM's operator has more outputs: copies of some as they were, which are stored first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/dag/dag.h"

namespace kiln::schedule {

// An operator's outputs in TVM's order.
struct TvmOutputs {
  std::vector<int> copied;   // those that are copied, in the order of the copies, which come first
  std::vector<int> updated;  // all, in the order in which they are updated

  // Where TVM has what is output number `output` here.
  int Place(int output) const;
};
TvmOutputs TvmOutputsOf(const dag::Operator& op);

// The written combiners of a computation, each once.
class PythonCombiners {
 public:
  explicit PythonCombiners(const dag::Dag& dag);

  bool empty() const { return combiners_.empty(); }
  // What reducer(...) and reduce_last(...) of the program know the operator's combiner by.
  std::string_view NameOf(const dag::Operator& op) const;
  // Definitions of functions, and COMBINERS: by name the function of te, the identities, and the
  // function of numpy.
  std::string Definitions() const;

 private:
  struct Named {
    std::string name;
    dag::OperatorPtr op;  // the first that is combined so
  };
  std::vector<Named> combiners_;
};

}  // namespace kiln::schedule
