#include "compiler/dag/input_facts.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/dag/index_limit.h"

namespace kiln::dag {

std::vector<InputFacts> InputsOf(const DagText& text) {
  const Dag& dag = *text.dag;
  const std::vector<std::string> names = DisplayNames(dag);
  const std::vector<int64_t> limits = IndexLimits(dag);
  std::vector<InputFacts> inputs;
  for (const Tensor argument : dag.arguments()) {
    if (!dag.op(argument.op).is_placeholder()) continue;
    const auto op = static_cast<size_t>(argument.op);
    const ir::Type type = dag.type(argument);
    InputFacts facts{.name = names[op],
                     .type = type,
                     .shape = dag.shape(argument),
                     .index_limit = type.is_int() ? limits[op] : 0};
    const auto range = std::ranges::find(text.ranges, facts.name, &InputRange::input);
    if (range != text.ranges.end()) facts.range = *range;
    inputs.push_back(std::move(facts));
  }
  return inputs;
}

std::string PrintInputFacts(const InputFacts& input) {
  std::string text =
      fmt::format("{}[{}] {}", TypeName(input.type), fmt::join(input.shape, ", "), input.name);
  if (input.index_limit > 0) text += fmt::format(" with indices below {}", input.index_limit);
  if (input.range.has_value()) {
    text += " with " + PrintValues(*input.range);
  }
  return text;
}

Status CheckSameInputs(const DagText& whole, const DagText& made) {
  const std::vector<InputFacts> want = InputsOf(whole), got = InputsOf(made);
  if (want.size() != got.size()) {
    return Internal("it has {} inputs, expected {}", got.size(), want.size());
  }
  for (size_t i = 0; i < want.size(); ++i) {
    if (want[i] == got[i]) continue;
    return Internal("its input {} is {}, expected {}", i, PrintInputFacts(got[i]),
                    PrintInputFacts(want[i]));
  }
  return OkStatus();
}

}  // namespace kiln::dag
