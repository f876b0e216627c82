// Lowering from a state to a program. Code generation, features and validity checks all use it.
#pragma once

#include <stop_token>

#include "base/status.h"
#include "compiler/ir/pass.h"
#include "compiler/ir/program.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

// Properties of the target that the passes depend on.
struct Options {
  // True: thread and block annotations are bound. False: they are refused.
  bool gpu = false;
  // If a stop is requested, the result is soon Cancelled.
  std::stop_token stop = {};
  // Instruments of the passes. Null: those that the environment asks for.
  const ir::PassInstruments* instruments = nullptr;
};

// Refuses a state that is not concrete, or whose attachments or annotations have no meaning on the
// target. The error has the stage and the reason. Deterministic. Cost: about 20 us for a tiled
// convolution with bias and ReLU (lower_bench).
StatusOr<ir::Program> Lower(const schedule::State& state, const Options& options);

// Fills the extents of all loops that depend on the region that an attached stage must cover, like
// ComputeDAG::InferBound of TVM. A state that is moved in keeps its stages.
StatusOr<schedule::State> FillExtents(schedule::State state, const std::stop_token& stop = {});

}  // namespace kiln::lower
