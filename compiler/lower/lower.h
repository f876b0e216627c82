// State -> program. The one path used by code generation, features and validity checks.
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
// target, with the stage and the reason. Deterministic. Cost: a few hundred microseconds for a
// tiled convolution; see tests/bench.
StatusOr<ir::Program> Lower(const schedule::State& state, const Options& options);

// Fills the extents of every loop that depends on the region an attached stage must cover (facts:
// InferBound).
StatusOr<schedule::State> FillExtents(const schedule::State& state,
                                      const std::stop_token& stop = {});

}  // namespace kiln::lower
