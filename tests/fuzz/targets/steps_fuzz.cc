// Replays steps of schedules. The first line names a case of the operator library
// (dag/ops/op_cases_testing), the rest is a list of steps for it. A list that parses prints as a
// text that parses to the same. A list that replays prints as source that reads back, and lowers on
// each target to a program that computes what the operator says.
#include <map>
#include <string>

#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/schedule/soundness_testing.h"
#include "compiler/schedule/source/parse.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/step.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"

namespace kiln::fuzz {
namespace {

constexpr double kMostWork = 2000;

std::map<std::string, dag::DagPtr, std::less<>> MakeCases() {
  std::map<std::string, dag::DagPtr, std::less<>> cases;
  for (const dag::OpCase& one : dag::SmallOpCases()) cases.emplace(one.Name(), one.Build());
  return cases;
}

dag::DagPtr CaseOf(std::string_view name) {
  static const auto* const cases = new auto(MakeCases());
  const auto found = cases->find(name);
  return found == cases->end() ? nullptr : found->second;
}

void CheckSteps(std::span<const schedule::StepPtr> steps) {
  const std::string printed = schedule::PrintSteps(steps);
  const auto parsed = schedule::ParseSteps(printed);
  KILN_CHECK(parsed.ok(), "{}\n{}", Message(parsed.status()), printed);
  KILN_CHECK(schedule::PrintSteps(*parsed) == printed, "{}\nas\n{}", printed,
             schedule::PrintSteps(*parsed));
  KILN_CHECK(schedule::HashSteps(*parsed) == schedule::HashSteps(steps), "{}", printed);
}

void CheckState(const schedule::State& state) {
  KILN_CHECK(!schedule::PrintLoops(state).empty());
  const std::string source = schedule::PrintPrimitives(state);
  const auto read = schedule::ParsePrimitives(state.initial_dag(), source);
  KILN_CHECK(read.ok(), "{}\n{}", Message(read.status()), source);
  KILN_CHECK(schedule::PrintLoops(*read) == schedule::PrintLoops(state), "{}", source);
  const Status sound = schedule::CheckSound(state);
  if (!sound.ok()) CheckRefusal(sound);
  for (const bool gpu : {false, true}) CheckLowered(state, gpu, kMostWork);
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  const std::string_view text = fuzz::InputText(data, size);
  const std::string_view name = text.substr(0, text.find('\n'));
  const dag::DagPtr dag = fuzz::CaseOf(name);
  if (dag == nullptr) return -1;
  const auto steps = schedule::ParseSteps(text.substr(name.size()));
  if (!steps.ok()) {
    fuzz::CheckRefusal(steps.status());
    return 0;
  }
  fuzz::CheckSteps(*steps);
  const auto state = schedule::Replay(dag, *steps);
  if (state.ok()) {
    fuzz::CheckState(*state);
  } else {
    fuzz::CheckRefusal(state.status());
  }
  return 0;
}
