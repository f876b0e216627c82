// The table of step kinds: a new kind adds one row here.
#include "compiler/dag/check_limits.h"
#include "compiler/dag/limits.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

struct Kind {
  std::string_view tag;
  StatusOr<StepPtr> (*parse)(StepReader& reader);
};

template <typename StepT>
constexpr Kind Row() {
  return {StepT::kTag, StepT::Parse};
}

constexpr Kind kKinds[] = {
    Row<AnnotateStep>(),         Row<FuseStep>(),         Row<PragmaStep>(),
    Row<ReorderStep>(),          Row<SplitStep>(),        Row<FollowSplitStep>(),
    Row<FollowFusedSplitStep>(), Row<StorageAlignStep>(), Row<ComputeAtStep>(),
    Row<ComputeInlineStep>(),    Row<ComputeRootStep>(),  Row<CacheReadStep>(),
    Row<CacheWriteStep>(),       Row<RfactorStep>(),      Row<BufferingStep>(),
    Row<LayoutStep>(),
};

StatusOr<StepPtr> ParseStep(StepReader& reader) {
  if (!reader.TryTake('[')) return reader.Fail("'[' of a step or ']' of the list");
  reader.BeginStep();
  const std::string_view tag = reader.Text("the tag");
  KILN_RETURN_IF_ERROR(reader.status());
  for (const Kind& kind : kKinds) {
    if (kind.tag == tag) return kind.parse(reader);
  }
  std::string known;
  for (const Kind& kind : kKinds) known += fmt::format(" {}", kind.tag);
  return InvalidArgument("unknown step tag \"{}\", expected one of{}", tag, known);
}

}  // namespace

StatusOr<std::vector<StepPtr>> ParseSteps(std::string_view json) {
  KILN_RETURN_IF_ERROR(dag::CheckTextBytes("the list of steps", json));
  StepReader reader(json);
  std::vector<StepPtr> steps;
  if (!reader.TryTake('[')) return Annotate(reader.Fail("'['"), "list of steps");
  if (!reader.TryTake(']')) {
    steps.reserve(64);
    do {
      StatusOr<StepPtr> step = ParseStep(reader);
      if (!step.ok()) return Annotate(step.status(), fmt::format("step #{}", steps.size()));
      steps.push_back(*std::move(step));
      if (steps.size() > static_cast<size_t>(dag::kMaxSteps))
        return InvalidArgument("list of steps: more than {} steps, expected fewer", dag::kMaxSteps);
    } while (reader.TryTake(','));
    if (!reader.TryTake(']')) return Annotate(reader.Fail("',' or ']'"), "list of steps");
  }
  if (!reader.AtEnd()) return Annotate(reader.Fail("the end of the text"), "list of steps");
  return steps;
}

Status CheckStepsText(std::string_view json) { return ParseSteps(json).status(); }

std::string PrintSteps(std::span<const StepPtr> steps) {
  std::string result = "[";
  for (const StepPtr& step : steps) {
    if (result.size() > 1) result += ", ";
    result += step->ToJson();
  }
  result += ']';
  return result;
}

}  // namespace kiln::schedule
