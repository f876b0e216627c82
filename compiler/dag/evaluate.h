// The oracle: computes a DAG element by element, as its definition reads. It is slow and obvious;
// all other ways to compute a DAG are tested against it.
//
// Reductions run over the reduce axes in order, the last innermost, and are rounded to the declared
// type at each step. With `wide_accumulation` they are carried in float64 and rounded once, which
// is nearer to the real numbers, for comparisons with programs that sum in another order. Every
// access is checked.
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

// `inputs` has one array per placeholder, in the order of Dag::arguments(). The result has one
// array per output, in that order. Refuses arrays of another number, type or shape. An error during
// the evaluation (an index read from an input that leaves its tensor) names the operator.
StatusOr<std::vector<ir::NDArray>> Evaluate(const Dag& dag, std::span<const ir::NDArray> inputs,
                                            const EvaluateOptions& options = {});

// An array whose elements are made when they are read. A source may keep state for that, so only
// one thread may use it.
class ElementSource {
 public:
  virtual ~ElementSource() = default;
  virtual ir::Type type() const = 0;
  virtual const std::vector<int64_t>& shape() const = 0;
  // `flat` is row-major and inside of the shape.
  virtual ir::Value At(int64_t flat) const = 0;
};

// Works like Evaluate, for inputs that are never whole in memory. For computations of a few
// elements.
StatusOr<std::vector<ir::NDArray>> EvaluateOn(const Dag& dag,
                                              std::span<const ElementSource* const> inputs,
                                              const EvaluateOptions& options = {});

// Returns every tensor of the DAG, by [operator][output]. Placeholders are copies of the inputs.
StatusOr<std::vector<std::vector<ir::NDArray>>> EvaluateAll(const Dag& dag,
                                                            std::span<const ir::NDArray> inputs,
                                                            const EvaluateOptions& options = {});

// Makes random inputs for the DAG by NDArray::FillRandom. Placeholders that are used as an index
// hold values that stay inside.
std::vector<ir::NDArray> RandomInputs(const Dag& dag, uint64_t seed,
                                      ir::RandomKind kind = ir::RandomKind::kUniform);

}  // namespace kiln::dag
