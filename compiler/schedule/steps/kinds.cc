// Reads and prints lists of steps, using the kinds in the list of kinds.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "compiler/dag/check_limits.h"
#include "compiler/dag/limits.h"
#include "compiler/schedule/steps/reader.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

using Parse = StatusOr<StepPtr> (*)(StepReader& reader);

template <typename... StepTs>
constexpr auto TagsOf(StepList<StepTs...>) {
  return std::array{StepTs::kTag...};
}
template <typename... StepTs>
constexpr auto ParsersOf(StepList<StepTs...>) {
  return std::array<Parse, sizeof...(StepTs)>{StepTs::Parse...};
}

constexpr std::array kTags = TagsOf(StepKinds());
constexpr std::array kParsers = ParsersOf(StepKinds());

constexpr bool AreUnique(std::span<const std::string_view> tags) {
  for (size_t i = 0; i < tags.size(); ++i) {
    if (std::ranges::count(tags, tags[i]) != 1) return false;
  }
  return true;
}
static_assert(AreUnique(kTags), "two kinds of steps have one tag");

StatusOr<StepPtr> ParseStep(JsonCursor& json) {
  if (!json.Take('[')) return json.Error("'[' of a step or ']' of the list");
  StepReader reader(json);
  const std::string_view tag = reader.Text("the tag");
  KILN_RETURN_IF_ERROR(reader.status());
  for (size_t i = 0; i < kTags.size(); ++i) {
    if (kTags[i] == tag) return kParsers[i](reader);
  }
  return InvalidArgument("unknown step tag \"{}\", expected one of {}", tag, fmt::join(kTags, " "));
}

}  // namespace

std::span<const std::string_view> StepTags() { return kTags; }

StatusOr<std::vector<StepPtr>> ParseSteps(std::string_view text) {
  KILN_RETURN_IF_ERROR(dag::CheckTextBytes("the list of steps", text));
  // Records have kernel points in place of steps (compiler/handwritten/kernel_point.h).
  if (text.starts_with("{\"kernel\":")) {
    return InvalidArgument(
        "list of steps: found the parameters of a hand-written kernel, which has no schedule; kiln "
        "show prints its source");
  }
  constexpr std::string_view kList = "list of steps";
  JsonCursor json(text);
  std::vector<StepPtr> steps;
  if (!json.Take('[')) return Annotate(json.Error("'['"), kList);
  if (!json.Take(']')) {
    steps.reserve(64);
    do {
      StatusOr<StepPtr> step = ParseStep(json);
      if (!step.ok()) return Annotate(step.status(), fmt::format("step #{}", steps.size()));
      steps.push_back(*std::move(step));
      if (steps.size() > static_cast<size_t>(dag::kMaxSteps))
        return InvalidArgument("list of steps: more than {} steps, expected fewer", dag::kMaxSteps);
    } while (json.Take(','));
    if (!json.Take(']')) return Annotate(json.Error("',' or ']'"), kList);
  }
  KILN_RETURN_IF_ERROR(Annotate(json.ExpectEnd(), kList));
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
