#include "compiler/schedule/primitives.h"

#include <cctype>

#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

// Every run of other characters becomes one "_"; none at the end.
std::string Identifier(std::string_view name) {
  std::string result;
  for (char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      result += c;
    } else if (!result.empty() && result.back() != '_') {
      result += '_';
    }
  }
  while (!result.empty() && result.back() == '_') result.pop_back();
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0]))) {
    result.insert(result.begin(), '_');
  }
  return result;
}

}  // namespace

std::string StageVar(const State& state, int stage) {
  std::string name = Identifier(state.dag()->op(stage).name());
  int earlier = 0;
  for (int i = 0; i < stage; ++i) {
    if (Identifier(state.dag()->op(i).name()) == name) ++earlier;
  }
  return earlier == 0 ? name : fmt::format("{}_{}", name, earlier);
}

std::string LoopVar(const State& state, int stage, int loop) {
  return Identifier(StageVar(state, stage) + "_" + LoopName(state.stage(stage), loop));
}

std::string LoopVars(const State& state, int stage, int first, int count) {
  std::string result;
  for (int i = first; i < first + count; ++i) {
    if (i > first) result += ", ";
    result += LoopVar(state, stage, i);
  }
  return result;
}

std::string DeclareLoops(const State& state, int stage) {
  const int count = static_cast<int>(state.stage(stage).loops.size());
  if (count == 0) return {};
  return fmt::format("{} = s[{}].axes\n", LoopVars(state, stage, 0, count), StageVar(state, stage));
}

std::string PrintPrimitives(const State& state) {
  State current(state.initial_dag());
  std::string result;
  for (int i = 0; i < current.num_stages(); ++i) result += DeclareLoops(current, i);
  for (const StepPtr& step : state.steps()) {
    const State before = current;
    const Status status = current.Apply(step);
    KILN_CHECK(status.ok(), "a step of the state does not apply again: {}", Message(status));
    result += step->ToPrimitives(before, current);
  }
  return result;
}

}  // namespace kiln::schedule
