#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "compiler/schedule/steps/steps.h"
#include "search/space/alike_products.h"
#include "search/space/matrix_product.h"
#include "search/space/stage_view.h"

namespace kiln::search {
namespace {

using schedule::As;
using schedule::Attach;
using schedule::BufferingStep;
using schedule::LayoutStep;
using schedule::PragmaStep;
using schedule::SplitStep;
using schedule::State;
using schedule::StepPtr;
using schedule::StorageAlignStep;

std::optional<ir::Hint> HintIn(const schedule::Step& step) {
  const auto* pragma = As<PragmaStep>(step);
  return pragma != nullptr && pragma->setting ? std::optional(pragma->setting->hint) : std::nullopt;
}

bool IsChoice(const schedule::Step& step) {
  return schedule::Is<SplitStep>(step) || schedule::Is<BufferingStep>(step) ||
         schedule::Is<LayoutStep>(step) || schedule::Is<StorageAlignStep>(step) || HintIn(step);
}

bool AreOfOneKind(const schedule::Step& a, const schedule::Step& b) {
  if (a.tag() != b.tag() || HintIn(a) != HintIn(b)) return false;
  const auto *one = As<SplitStep>(a), *other = As<SplitStep>(b);
  return one == nullptr || (one->lengths.size() == other->lengths.size() &&
                            one->inner_to_outer == other->inner_to_outer);
}

// A product, and the numbers of the steps that choose something for it: for each of its stages, the
// product itself, the tiles of its factors, and the stages around it from the inside.
struct Chosen {
  MatrixProduct product;
  const dag::Operator* op;
  std::vector<std::vector<int>> stages = {};
};

std::vector<int> ChoicesFor(const State& state, int s) {
  std::vector<int> numbers;
  for (const int number : StepsOf(state, s)) {
    if (IsChoice(*state.steps()[static_cast<size_t>(number)])) numbers.push_back(number);
  }
  for (const std::optional<int>& parts : {GroupSplitOf(state, s), PartsSplitOf(state, s)}) {
    if (parts && std::ranges::find(numbers, *parts) == numbers.end()) numbers.push_back(*parts);
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::optional<Chosen> ChosenFor(const State& state, int s) {
  const dag::Operator& op = *state.stage(s).op;
  std::optional<MatrixProduct> product = MatrixProductOf(state, s);
  if (!product) return std::nullopt;
  Chosen chosen{.product = *std::move(product), .op = &op};
  chosen.stages.push_back(ChoicesFor(state, s));
  for (const ir::Expr load : {chosen.product.first, chosen.product.second}) {
    const int fetched = state.dag()->node(s).inputs[static_cast<size_t>(load->id)].op;
    const Attach& at = state.attach(fetched);
    const bool is_inside = at.kind == Attach::kIter && at.stage == s;
    chosen.stages.push_back(is_inside ? ChoicesFor(state, fetched) : std::vector<int>());
  }
  for (Attach at = state.attach(s); at.kind == Attach::kIter; at = state.attach(at.stage))
    chosen.stages.push_back(ChoicesFor(state, at.stage));
  return chosen;
}

bool AreOfOneForm(const Chosen& a, const Chosen& b) {
  return AreAlike(a.product, b.product) && a.stages.size() == b.stages.size() &&
         a.op->num_elements() * a.op->reduce_size() == b.op->num_elements() * b.op->reduce_size();
}

// Adds the sets of the same stage of all products, if they have as many choices of the same kinds.
void AddSets(const State& state, const std::vector<const Chosen*>& products, size_t stage,
             std::vector<std::vector<int>>& sets) {
  const std::vector<int>& first = products[0]->stages[stage];
  const auto step = [&](int number) -> const schedule::Step& {
    return *state.steps()[static_cast<size_t>(number)];
  };
  const auto is_of_one_kind = [&](int a, int b) { return AreOfOneKind(step(a), step(b)); };
  for (const Chosen* other : products) {
    if (!std::ranges::equal(first, other->stages[stage], is_of_one_kind)) return;
  }
  for (size_t i = 0; i < first.size(); ++i) {
    std::vector<int>& set = sets.emplace_back();
    for (const Chosen* product : products) set.push_back(product->stages[stage][i]);
  }
}

}  // namespace

std::vector<std::vector<int>> AlikeChoices(const State& state) {
  const std::vector<int> stages = ProductsOfMatrixUnits(state);
  std::vector<std::vector<int>> sets;
  if (stages.size() < 2) return sets;
  std::vector<Chosen> all;
  for (const int s : stages) {
    if (std::optional<Chosen> chosen = ChosenFor(state, s)) all.push_back(*std::move(chosen));
  }
  std::vector<bool> is_done(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<const Chosen*> products;
    for (size_t j = i; j < all.size() && !is_done[i]; ++j) {
      if (is_done[j] || !AreOfOneForm(all[i], all[j])) continue;
      products.push_back(&all[j]);
      if (j > i) is_done[j] = true;
    }
    if (products.size() < 2) continue;
    for (size_t stage = 0; stage < all[i].stages.size(); ++stage)
      AddSets(state, products, stage, sets);
  }
  return sets;
}

StepPtr WithChoiceOf(const StepPtr& step, const schedule::Step& other) {
  StepPtr made = step;
  if (const auto* split = As<SplitStep>(other)) {
    const SplitStep& own = *As<SplitStep>(*step);
    made = std::make_shared<SplitStep>(own.stage_id, own.loop, own.extent, split->lengths,
                                       own.inner_to_outer);
  } else if (const auto* buffers = As<BufferingStep>(other)) {
    made = std::make_shared<BufferingStep>(step->stage(), buffers->depth, buffers->asynchronous);
  } else if (const auto* layout = As<LayoutStep>(other)) {
    made = std::make_shared<LayoutStep>(step->stage(), layout->order);
  } else if (const auto* padding = As<StorageAlignStep>(other)) {
    made = std::make_shared<StorageAlignStep>(step->stage(), padding->loop, padding->factor,
                                              padding->offset);
  } else if (const auto hint = HintIn(other)) {
    made = schedule::HintStep(step->stage(), *hint, *schedule::HintOf(other, *hint));
  }
  return made->Hash() == step->Hash() ? step : made;
}

bool ChooseAlike(const State& state, std::vector<StepPtr>& steps) {
  bool changed = false;
  for (const std::vector<int>& set : AlikeChoices(state)) {
    const StepPtr last = steps[static_cast<size_t>(set.back())];
    for (const int number : set) {
      StepPtr& step = steps[static_cast<size_t>(number)];
      StepPtr made = WithChoiceOf(step, *last);
      changed = changed || made != step;
      step = std::move(made);
    }
  }
  return changed;
}

void ChangeAlike(const State& before, std::vector<StepPtr>& after) {
  const std::vector<StepPtr>& steps = before.steps();
  if (after.size() != steps.size()) return;
  const auto is_changed = [&](int number) {
    return after[static_cast<size_t>(number)] != steps[static_cast<size_t>(number)];
  };
  for (const std::vector<int>& set : AlikeChoices(before)) {
    const auto changed = std::ranges::find_if(set, is_changed);
    if (changed == set.end()) continue;
    const StepPtr &was = steps[static_cast<size_t>(*changed)],
                  &is = after[static_cast<size_t>(*changed)];
    for (const int number : set) {
      const StepPtr& own = steps[static_cast<size_t>(number)];
      if (!is_changed(number) && WithChoiceOf(own, *was) == own)
        after[static_cast<size_t>(number)] = WithChoiceOf(own, *is);
    }
  }
}

}  // namespace kiln::search
