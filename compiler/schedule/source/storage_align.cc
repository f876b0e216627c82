#include <limits>

#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const StorageAlignStep& step, SourcePrinter& out) {
  out.Line("s[{}].storage_align({}, {}, {})", out.Stage(step.stage_id),
           out.Loop(step.stage_id, step.loop), step.factor, step.offset);
}

StatusOr<StepPtr> ReadStorageAlign(SourceCall& call) {
  constexpr int kMax = std::numeric_limits<int>::max();
  const int loop = call.Loop("the loop of an axis");
  const auto factor = static_cast<int>(call.Int("the factor", 1, kMax));
  const auto offset = static_cast<int>(call.Int("the offset", 0, kMax));
  return call.Make<StorageAlignStep>(call.stage(), loop, factor, offset);
}

}  // namespace kiln::schedule
