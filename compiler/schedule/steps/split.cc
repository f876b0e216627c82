#include <fmt/ranges.h>

#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/split_loop.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

StatusOr<StepPtr> SplitStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  const int loop = reader.Int("loop");
  const int64_t extent = reader.Int64("extent");
  std::vector<int64_t> lengths = reader.Int64s("lengths");
  const bool inner_to_outer = reader.Flag("inner_to_outer");
  return reader.Make<SplitStep>(stage, loop, extent, std::move(lengths), inner_to_outer);
}

Status SplitStep::ApplyTo(State& state) const {
  KILN_RETURN_IF_ERROR(CheckSplittable(state, stage_id, loop, lengths.size()));
  KILN_RETURN_IF_ERROR(CheckLengths(lengths));
  SplitLoop(state, stage_id, loop, lengths, inner_to_outer);
  return OkStatus();
}

std::string SplitStep::ToJson() const {
  return fmt::format("[\"SP\", {}, {}, {}, [{}], {:d}]", stage_id, loop, extent,
                     fmt::join(lengths, ", "), inner_to_outer);
}

// The extent has no effect and is left out.
uint64_t SplitStep::Hash() const {
  return StepHash(kTag).Add(stage_id).Add(loop).AddAll(lengths).Add(inner_to_outer).value();
}

uint64_t SplitStep::ShapeHash() const {
  return StepHash(kTag).Add(stage_id).Add(loop).Add(lengths.size()).Add(inner_to_outer).value();
}

}  // namespace kiln::schedule
