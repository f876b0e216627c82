#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "compiler/schedule/steps/hash.h"
#include "compiler/schedule/steps/legality.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {

StatusOr<StepPtr> LayoutStep::Parse(StepReader& reader) {
  const int stage = reader.Int("stage");
  std::vector<int> order = reader.Ints("order");
  return reader.Make<LayoutStep>(stage, std::move(order));
}

Status LayoutStep::ApplyTo(State& state) const {
  KILN_RETURN_IF_ERROR(CheckComputes(state, stage_id));
  if (state.dag()->is_output(stage_id)) {
    return InvalidArgument("an output's buffer is the caller's; expected another stage");
  }
  std::vector<int> sorted = order, axes(state.stage(stage_id).op->axes().size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(axes.begin(), axes.end(), 0);
  if (sorted != axes) {
    return InvalidArgument(
        "[{}] is not an order of the {} spatial axes; expected each number from 0 once",
        fmt::join(order, ", "), axes.size());
  }
  std::vector<int32_t>& layout = state.MutableStage(stage_id).layout;
  layout.clear();
  if (order != axes) layout.assign(order.begin(), order.end());
  return OkStatus();
}

std::string LayoutStep::ToJson() const {
  return fmt::format("[\"LA\", {}, [{}]]", stage_id, fmt::join(order, ", "));
}

uint64_t LayoutStep::Hash() const { return StepHash(kTag).Add(stage_id).AddAll(order).value(); }

uint64_t LayoutStep::ShapeHash() const { return StepHash(kTag).Add(stage_id).value(); }

}  // namespace kiln::schedule
