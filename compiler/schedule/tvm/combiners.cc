#include "compiler/schedule/tvm/combiners.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "compiler/schedule/source/names.h"
#include "compiler/schedule/tvm/expression.h"
#include "compiler/schedule/tvm/primitives.h"

namespace kiln::schedule {
namespace {

using dag::CustomCombiner;
using ir::Expr;

void CollectVars(Expr e, std::unordered_set<Expr>& seen, std::unordered_set<int>& vars) {
  if (!seen.insert(e).second) return;
  if (e->op == ir::Op::kVar) vars.insert(e->id);
  for (Expr arg : e->args()) CollectVars(arg, seen, vars);
}

// Returns for each part the variables that its update reads.
std::vector<std::unordered_set<int>> VarsOfResults(const CustomCombiner& combiner) {
  std::vector<std::unordered_set<int>> vars(combiner.results.size());
  for (size_t i = 0; i < vars.size(); ++i) {
    std::unordered_set<Expr> seen;
    CollectVars(combiner.results[i], seen, vars[i]);
  }
  return vars;
}

// Returns "(a, b)", or "(a,)" for a single item.
std::string Tuple(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return fmt::format("({}{})", text, items.size() == 1 ? "," : "");
}

// Names the parts of the left value, of the right one, and of the left one before its update, as
// variables of a function.
std::vector<std::string> Variables(const CustomCombiner& combiner) {
  std::unordered_set<std::string> taken = {"_", "left", "right"};
  for (std::string_view word : TvmReservedWords()) taken.emplace(word);
  std::vector<std::string> names;
  const auto add = [&](std::string_view part) {
    std::string name = PythonName(part);
    while (SourceNames::IsReserved(name) || taken.contains(name)) name += '_';
    taken.insert(name);
    names.push_back(std::move(name));
  };
  for (const CustomCombiner::Part& part : combiner.parts) add(part.left);
  for (const CustomCombiner::Part& part : combiner.parts) add(part.right);
  for (const CustomCombiner::Part& part : combiner.parts) add(part.left + "_before");
  return names;
}

std::string TeFunction(const CustomCombiner& combiner, const TvmOutputs& outputs,
                       std::string_view name) {
  const std::vector<std::string> variables = Variables(combiner);
  const size_t n = combiner.parts.size();
  const PythonNames names{.var = [&](int32_t id) { return variables[static_cast<size_t>(id)]; },
                          .tensor = {},
                          .vars_are_values = true};
  std::vector<std::string> left, right, results;
  // A read of a copy gets the value that has just been stored there.
  for (int part : outputs.copied) {
    const auto p = static_cast<size_t>(part);
    left.push_back(variables[p]);
    right.emplace_back("_");
    results.push_back(variables[2 * n + p]);
  }
  for (int part : outputs.updated) {
    const auto p = static_cast<size_t>(part);
    const bool copied = std::ranges::find(outputs.copied, part) != outputs.copied.end();
    left.push_back(variables[copied ? 2 * n + p : p]);
    right.push_back(variables[n + p]);
    results.push_back(TvmExpression(combiner.results[p], names));
  }
  // TVM takes a value of one part as it is, not as a tuple.
  const bool one = n == 1;
  return fmt::format("\n\ndef te_{}(left, right):\n    {}, {} = left, right\n    return {}\n", name,
                     one ? left[0] : Tuple(left), one ? right[0] : Tuple(right),
                     one ? results[0] : Tuple(results));
}

std::string NumpyFunction(const CustomCombiner& combiner, std::string_view name) {
  const std::vector<std::string> variables = Variables(combiner);
  const auto n = static_cast<std::ptrdiff_t>(combiner.parts.size());
  const PythonNames names{.var = [&](int32_t id) { return variables[static_cast<size_t>(id)]; },
                          .tensor = {},
                          .vars_are_values = true};
  std::vector<std::string> results;
  for (Expr result : combiner.results) results.push_back(NumpyExpression(result, names));
  return fmt::format("\n\ndef np_{}(left, right):\n    {}, {} = left, right\n    return {}\n", name,
                     Tuple({variables.begin(), variables.begin() + n}),
                     Tuple({variables.begin() + n, variables.begin() + 2 * n}), Tuple(results));
}

// Returns the initial values of a reduction in TVM.
std::string Identities(const CustomCombiner& combiner, const TvmOutputs& outputs) {
  const PythonNames names{.var = {}, .tensor = {}, .vars_are_values = true};
  std::vector<std::string> identities;
  for (const std::vector<int>* parts : {&outputs.copied, &outputs.updated}) {
    for (int part : *parts)
      identities.push_back(TvmExpression(combiner.identity[static_cast<size_t>(part)], names));
  }
  return identities.size() == 1 ? identities[0] : Tuple(identities);
}

}  // namespace

int TvmOutputs::Place(int output) const {
  const auto at = std::ranges::find(updated, output);
  return static_cast<int>(copied.size() + static_cast<size_t>(at - updated.begin()));
}

TvmOutputs TvmOutputsOf(const dag::Operator& op) {
  TvmOutputs outputs;
  std::vector<int> left(static_cast<size_t>(op.num_outputs()));
  std::iota(left.begin(), left.end(), 0);
  if (op.reduction().custom == nullptr) {
    outputs.updated = std::move(left);
    return outputs;
  }
  const auto vars = VarsOfResults(*op.reduction().custom);
  const auto is_needed = [&](int part) {
    return std::ranges::any_of(left, [&](int other) {
      return other != part && vars[static_cast<size_t>(other)].contains(part);
    });
  };
  while (!left.empty()) {
    auto next = std::ranges::find_if_not(left, is_needed);
    if (next == left.end()) {
      next = left.begin();
      outputs.copied.push_back(*next);
    }
    outputs.updated.push_back(*next);
    left.erase(next);
  }
  return outputs;
}

PythonCombiners::PythonCombiners(const dag::Dag& dag) {
  for (const dag::OpNode& node : dag.nodes()) {
    if (node.op->reduction().custom == nullptr || !NameOf(*node.op).empty()) continue;
    const std::string own = PythonName(node.op->reduction().custom->name);
    std::string name = own;
    const auto is_taken = [&] {
      dag::Combiner known;
      return dag::ParseCombiner(name, &known) ||
             std::ranges::find(combiners_, name, &Named::name) != combiners_.end();
    };
    for (int number = 2; is_taken(); ++number) name = fmt::format("{}_{}", own, number);
    combiners_.push_back({std::move(name), node.op});
  }
}

std::string_view PythonCombiners::NameOf(const dag::Operator& op) const {
  const auto known = std::ranges::find_if(
      combiners_, [&](const Named& one) { return one.op->reduction() == op.reduction(); });
  return known == combiners_.end() ? std::string_view() : std::string_view(known->name);
}

std::string PythonCombiners::Definitions() const {
  std::string text, table;
  for (const auto& [name, op] : combiners_) {
    const CustomCombiner& combiner = *op->reduction().custom;
    const TvmOutputs outputs = TvmOutputsOf(*op);
    text += TeFunction(combiner, outputs, name) + NumpyFunction(combiner, name);
    table += fmt::format("    \"{}\": (te_{}, lambda *types: {}, np_{}),\n", name, name,
                         Identities(combiner, outputs), name);
  }
  return fmt::format("{}\n\nCOMBINERS = {{\n{}}}\n", text, table);
}

}  // namespace kiln::schedule
