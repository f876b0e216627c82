// Does a schedule compute what its DAG says? The check shared by the exhaustive and the random
// suite.
#pragma once

#include <span>
#include <vector>

#include "base/packing.h"
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

// Inputs are small whole numbers, so that sums are exact in any order (functions like exp apart).
Workload MakeWorkload(std::string name, dag::DagPtr dag, uint64_t seed);

// Fresh, poisoned outputs.
std::vector<ir::NDArray> PoisonedOutputs(const Workload& workload);

// As a program takes it that wants it packed.
ir::NDArray Packed(const ir::NDArray& plain, const Packing& packing);

// The same elements, as a program takes them whose axes were merged (MA steps).
ir::NDArray WithShape(const ir::NDArray& array, std::vector<int64_t> shape);

// Compares outputs with the oracle's.
Status CompareOutputs(const Workload& workload, std::span<const ir::NDArray> outputs);

// Lowers the state and runs the program in the interpreter, which checks every access and every
// race. The error holds the steps and the program.
// gpu: lowered for a GPU; threads may then write equal values to one element.
Status CheckByInterpreter(const Workload& workload, const schedule::State& state, bool gpu = false);

}  // namespace kiln
