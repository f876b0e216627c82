#include "compiler/schedule/primitives.h"

#include <cctype>
#include <memory>
#include <unordered_map>
#include <vector>

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

std::vector<std::string> StageVarsOf(const dag::Dag& dag) {
  std::vector<std::string> vars;
  std::unordered_map<std::string, int> earlier;
  for (int i = 0; i < dag.size(); ++i) {
    std::string name = Identifier(dag.op(i).name());
    const int same = earlier[name]++;
    vars.push_back(same == 0 ? std::move(name) : fmt::format("{}_{}", name, same));
  }
  return vars;
}

}  // namespace

std::string StageVar(const State& state, int stage) {
  // Who asks for one asks for the others of the same DAG, too.
  struct Last {
    std::weak_ptr<const dag::Dag> dag;
    std::vector<std::string> vars;
  };
  thread_local Last last;
  if (last.dag.lock() != state.dag()) last = {state.dag(), StageVarsOf(*state.dag())};
  return last.vars[stage];
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

}  // namespace kiln::schedule
