#include "search/fragments.h"

#include <set>

#include "compiler/schedule/steps/steps.h"
#include "search/shared_layout.h"
#include "search/thread_shapes.h"

namespace kiln::search {

schedule::StepPtr FragmentsStep(int stage, int way) {
  return std::make_shared<schedule::PragmaStep>(
      stage, 0, fmt::format("{}{}", schedule::kFragmentsPragma, way));
}

std::optional<int> FragmentsOf(const schedule::Step& step) {
  return schedule::PragmaNumber(step, schedule::kFragmentsPragma);
}

Status AnnotateFragments(schedule::State& state, Rng& rng) {
  std::set<int> readers;
  for (const int s : FetchedStages(state)) {
    if (!IsCopied(state, s)) readers.insert(state.attach(s).stage);
  }
  for (const int reader : readers) {
    const int way = static_cast<int>(rng() % kFragmentWays);
    KILN_RETURN_IF_ERROR(state.Apply(FragmentsStep(reader, way)));
  }
  return OkStatus();
}

}  // namespace kiln::search
