#include "scheduler/dispatch/program_interface.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/dag/input_facts.h"

namespace kiln::scheduler {
namespace {

std::string Describe(const v1::ArgSpec& spec) {
  std::string text = fmt::format("{} {}[{}] {}", v1::ArgSpec::Role_Name(spec.role()), spec.dtype(),
                                 fmt::join(spec.shape(), ", "), spec.name());
  if (spec.index_limit() > 0) text += fmt::format(" with indices below {}", spec.index_limit());
  if (spec.has_range()) {
    text += " with " + dag::PrintValues({.input = spec.name(),
                                         .low = spec.range().low(),
                                         .high = spec.range().high(),
                                         .run = spec.range().run()});
  }
  return text;
}

bool SameRange(const v1::ArgSpec& a, const v1::ArgSpec& b) {
  return a.has_range() == b.has_range() && a.range().low() == b.range().low() &&
         a.range().high() == b.range().high() && a.range().run() == b.range().run();
}

bool IsSame(const v1::ArgSpec& got, const v1::ArgSpec& want) {
  return got.name() == want.name() && got.dtype() == want.dtype() && got.role() == want.role() &&
         std::ranges::equal(got.shape(), want.shape()) && got.index_limit() == want.index_limit() &&
         SameRange(got, want) && (!got.is_packed() || want.role() == v1::ArgSpec::INPUT);
}

}  // namespace

std::vector<v1::ArgSpec> ArgumentsOf(const dag::DagText& text) {
  const std::vector<dag::InputFacts> inputs = dag::InputsOf(text);
  const std::vector<std::string> names = dag::DisplayNames(*text.dag);
  std::vector<v1::ArgSpec> arguments;
  size_t next_input = 0;
  for (const dag::Tensor argument : text.dag->arguments()) {
    v1::ArgSpec& spec = arguments.emplace_back();
    spec.set_name(dag::TensorName(*text.dag, names, argument));
    spec.set_dtype(std::string(ir::TypeName(text.dag->type(argument))));
    const std::vector<int64_t>& shape = text.dag->shape(argument);
    spec.mutable_shape()->Assign(shape.begin(), shape.end());
    if (!text.dag->op(argument.op).is_placeholder()) {
      spec.set_role(v1::ArgSpec::OUTPUT);
      continue;
    }
    const dag::InputFacts& input = inputs[next_input++];
    spec.set_role(v1::ArgSpec::INPUT);
    spec.set_index_limit(input.index_limit);
    if (!input.range.has_value()) continue;
    spec.mutable_range()->set_low(input.range->low);
    spec.mutable_range()->set_high(input.range->high);
    spec.mutable_range()->set_run(input.range->run);
  }
  return arguments;
}

Status CheckPlan(const std::vector<v1::ArgSpec>& arguments, const v1::LaunchPlan& plan) {
  const auto expected = static_cast<int>(arguments.size());
  if (plan.args_size() < expected) {
    return InvalidArgument("the program has {} arguments, expected {}", plan.args_size(), expected);
  }
  for (int i = 0; i < plan.args_size(); ++i) {
    if (i < expected && IsSame(plan.args(i), arguments[static_cast<size_t>(i)])) continue;
    if (i >= expected && plan.args(i).role() == v1::ArgSpec::WORKSPACE) continue;
    return InvalidArgument(
        "argument {} of the program is {}, expected {}", i, Describe(plan.args(i)),
        i < expected ? Describe(arguments[static_cast<size_t>(i)]) : "a workspace");
  }
  return OkStatus();
}

}  // namespace kiln::scheduler
