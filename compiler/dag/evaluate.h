// The oracle: computes a DAG element by element, as its definition reads. Slow and obvious;
// everything else is tested against it.
//
// Reductions run over the reduce axes in order, the last innermost, and are rounded to the declared
// type at each step, unless `wide_accumulation` carries them in float64 and rounds once: nearer to
// the real numbers, for comparing with programs that sum in another order. Every access is checked.
//
// Cost: some tens of nanoseconds for each node of a body and each point of its domain. Pure; any
// thread.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/evaluate.h"
#include "compiler/ir/ndarray.h"

namespace kiln::dag {

struct EvaluateOptions {
  bool wide_accumulation = false;
};

// `inputs`: one array per placeholder, as Dag::arguments() lists them. Result: one per output, in
// that order. Refuses arrays of another number, type or shape. An error from inside (an index read
// from an input that leaves its tensor) names the operator.
StatusOr<std::vector<ir::NDArray>> Evaluate(const Dag& dag, std::span<const ir::NDArray> inputs,
                                            const EvaluateOptions& options = {});

// An array whose elements are made when they are read. May keep what it needs for that: one thread.
class ElementSource {
 public:
  virtual ~ElementSource() = default;
  virtual ir::Type type() const = 0;
  virtual const std::vector<int64_t>& shape() const = 0;
  virtual ir::Value At(int64_t flat) const = 0;  // row-major, inside of the shape
};

// As Evaluate, of inputs that are never whole in memory: for computations of a few elements.
StatusOr<std::vector<ir::NDArray>> EvaluateOn(const Dag& dag,
                                              std::span<const ElementSource* const> inputs,
                                              const EvaluateOptions& options = {});

// Every tensor of the DAG: [operator][output]. Placeholders are copies of the inputs.
StatusOr<std::vector<std::vector<ir::NDArray>>> EvaluateAll(const Dag& dag,
                                                            std::span<const ir::NDArray> inputs,
                                                            const EvaluateOptions& options = {});

// Random inputs for the DAG, as NDArray::FillRandom; placeholders used as an index hold values that
// stay inside.
std::vector<ir::NDArray> RandomInputs(const Dag& dag, uint64_t seed,
                                      ir::RandomKind kind = ir::RandomKind::kUniform);

}  // namespace kiln::dag
