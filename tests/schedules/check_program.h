// Checks that a schedule computes what its DAG says. The exhaustive and the random suite share the
// check.
#pragma once

#include <span>
#include <vector>

#include "base/arrays/packing.h"
#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/ndarray.h"
#include "compiler/ir/program.h"
#include "compiler/schedule/state.h"

namespace kiln {

// A workload with inputs and the oracle's outputs for them.
struct Workload {
  std::string name;
  dag::DagPtr dag;
  std::vector<ir::NDArray> inputs, outputs;
};

// Makes a workload. Inputs are small whole numbers, so that sums are exact in any order, except for
// functions like exp.
Workload MakeWorkload(std::string name, dag::DagPtr dag, uint64_t seed);

// Returns new, poisoned outputs.
std::vector<ir::NDArray> PoisonedOutputs(const Workload& workload);

// Returns the array as a program takes it that wants it packed.
ir::NDArray Packed(const ir::NDArray& plain, const Packing& packing);

// Returns the same elements in the shape in which a program with merged axes (MA steps) takes them.
ir::NDArray WithShape(const ir::NDArray& array, std::vector<int64_t> shape);

// Compares outputs with the oracle's.
Status CompareOutputs(const Workload& workload, std::span<const ir::NDArray> outputs);

// Lowers the state and runs the program in the interpreter, which checks every access and every
// race. The error holds the steps and the program. If `gpu`, the state is lowered for a GPU, and
// threads may write equal values to one element.
Status CheckByInterpreter(const Workload& workload, const schedule::State& state, bool gpu = false);

}  // namespace kiln
