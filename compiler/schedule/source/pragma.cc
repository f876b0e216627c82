#include <algorithm>
#include <iterator>
#include <limits>

#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const PragmaStep& step, SourcePrinter& out) {
  const std::string& stage = out.Stage(step.stage_id);
  const std::string& loop = out.Loop(step.stage_id, step.loop);
  if (!step.setting) return out.Line("s[{}].pragma({}, \"{}\")", stage, loop, step.pragma);
  out.Line("s[{}].pragma({}, \"{}\", {})", stage, loop, ir::RowOf(step.setting->hint).pragma,
           step.setting->value);
}

StatusOr<StepPtr> ReadPragma(SourceCall& call) {
  constexpr std::string_view kWithoutValue = "debug_skip_region";
  const int loop = call.Loop("a loop of the stage");
  const std::string_view name = call.Text("the name of the pragma");
  const bool known =
      name == kWithoutValue ||
      std::ranges::find(ir::kHints, name, &ir::HintRow::pragma) != std::end(ir::kHints);
  if (!known) {
    std::string names;
    for (const ir::HintRow& row : ir::kHints) names += fmt::format("\"{}\", ", row.pragma);
    call.Fail(fmt::format("one of {}\"{}\", found \"{}\"", names, kWithoutValue, name));
  }
  if (name == kWithoutValue) return call.Make<PragmaStep>(call.stage(), loop, std::string(name));
  constexpr int kMax = std::numeric_limits<int32_t>::max();
  const int64_t value = call.Int("its value", 0, kMax);
  return call.Make<PragmaStep>(call.stage(), loop, fmt::format("{}${}", name, value));
}

}  // namespace kiln::schedule
