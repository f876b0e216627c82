// States written as text: a computation (docs/text-form.md) and steps (docs/steps.md).
#pragma once

#include <string_view>

#include "compiler/dag/text.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::lower {

// Aborts with the message if either is wrong.
inline schedule::State StateFrom(std::string_view dag_text, std::string_view steps_json) {
  const StatusOr<dag::DagPtr> dag = dag::ParseDag(dag_text);
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  const auto steps = schedule::ParseSteps(steps_json);
  KILN_CHECK(steps.ok(), "{}", Message(steps.status()));
  StatusOr<schedule::State> state = schedule::Replay(*dag, *steps);
  KILN_CHECK(state.ok(), "{}", Message(state.status()));
  return *std::move(state);
}

// Returns the stage of that name.
inline int StageNamed(const schedule::State& state, std::string_view name) {
  for (int s = 0; s < state.num_stages(); ++s) {
    if (state.stage(s).op->name() == name) return s;
  }
  KILN_CHECK(false, "no stage {}", name);
}

}  // namespace kiln::lower
