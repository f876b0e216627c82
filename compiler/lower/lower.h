// Lowering: state -> program. Code generation, features and validity checks all use it.
#pragma once

#include <stop_token>

#include "base/status.h"
#include "compiler/ir/pass.h"
#include "compiler/ir/program.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// What the passes have to know of the target.
struct Options {
  bool gpu = false;  // thread and block annotations are bound; else refused
  // Requested: the result is Cancelled, soon.
  std::stop_token stop = {};
  // What watches the passes; null: what the environment asks for.
  const ir::PassInstruments* instruments = nullptr;
};

// Refuses a state that is not concrete, or whose attachments or annotations have no meaning on the
// target, with the stage and the reason. Deterministic. Cost: about 20 us for a tiled convolution
// with bias and ReLU (lower_bench).
StatusOr<ir::Program> Lower(const schedule::State& state, const Options& options);

// Fills the extents of all loops that depend on the region an attached stage must cover, as
// ComputeDAG::InferBound of TVM. A state that is moved in keeps its stages.
StatusOr<schedule::State> FillExtents(schedule::State state, const std::stop_token& stop = {});

}  // namespace kiln::lower
