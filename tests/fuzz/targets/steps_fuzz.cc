// Replays steps of schedules. The first line names a case of the operator library
// (dag/ops/op_cases_testing), the rest is a list of steps for it. A list that parses prints as a
// text that parses to the same. A list that replays prints as source that reads back, and lowers on
// each target to a program that computes what the operator says.
#include <vector>

#include "compiler/schedule/soundness_testing.h"
#include "compiler/schedule/step.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"
#include "tests/fuzz/targets/round_trip.h"
#include "tests/fuzz/targets/scheduled_case.h"

namespace kiln::fuzz {
namespace {

constexpr double kMaxWork = 2000;

using Steps = std::vector<schedule::StepPtr>;

bool HaveEqualHashes(const Steps& a, const Steps& b) {
  return schedule::HashSteps(a) == schedule::HashSteps(b);
}

void CheckState(const schedule::State& state) {
  KILN_CHECK(!schedule::PrintLoops(state).empty());
  CheckSource(state);
  const Status sound = schedule::CheckSound(state);
  if (!sound.ok()) CheckRefusal(sound);
  for (const bool gpu : {false, true}) CheckLowered(state, gpu, kMaxWork);
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  const std::string_view text = fuzz::InputText(data, size);
  const std::string_view name = text.substr(0, text.find('\n'));
  const dag::DagPtr dag = fuzz::OpCaseOf(name);
  if (dag == nullptr) return -1;
  const auto steps = schedule::ParseSteps(text.substr(name.size()));
  if (!steps.ok()) {
    fuzz::CheckRefusal(steps.status());
    return 0;
  }
  fuzz::CheckRoundTrip(*steps, schedule::PrintSteps, schedule::ParseSteps, fuzz::HaveEqualHashes);
  const auto state = schedule::Replay(dag, *steps);
  if (state.ok()) {
    fuzz::CheckState(*state);
  } else {
    fuzz::CheckRefusal(state.status());
  }
  return 0;
}
