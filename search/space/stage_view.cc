#include "search/space/stage_view.h"

#include <algorithm>

#include "compiler/schedule/steps/steps.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::Annotation;
using schedule::As;
using schedule::CacheReadStep;
using schedule::CacheWriteStep;
using schedule::Is;
using schedule::IterKind;
using schedule::RfactorStep;
using schedule::SplitStep;
using schedule::Stage;
using schedule::State;

bool ChangesStages(const schedule::Step& step) {
  return Is<CacheWriteStep>(step) || Is<CacheReadStep>(step) || Is<RfactorStep>(step);
}

// Returns the number that stage s had before the step, which did not make it.
int NumberBefore(const schedule::Step& step, int s) {
  if (const auto* move = As<schedule::MoveStageStep>(step)) {
    if (s == move->before) return move->stage_id;
    return s > move->before && s <= move->stage_id ? s - 1 : s;
  }
  return ChangesStages(step) && s > step.stage() ? s - 1 : s;
}

double Product(const std::vector<dag::Axis>& axes) {
  double product = 1;
  for (const dag::Axis& axis : axes) product *= static_cast<double>(axis.extent);
  return product;
}

bool ReducesAcrossThreads(const Stage& stage) {
  for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
    if (stage.annotation(i) == Annotation::kThreadX && stage.loop(i).kind == IterKind::kReduce)
      return true;
  }
  return false;
}

}  // namespace

std::optional<int> StageView::ElementwiseConsumer() const {
  const std::vector<int> consumers = state_.Consumers(s_);
  if (consumers.size() != 1) return std::nullopt;
  const int consumer = consumers[0];
  const bool is_matched = IsOfJoinedSums() ? analysis_.elementwise_on_all_paths(s_, consumer)
                                           : analysis_.elementwise_match(s_, consumer);
  if (!is_matched) return std::nullopt;
  const bool both_reduce = HasReduceLoop(state_.stage(s_)) && HasReduceLoop(state_.stage(consumer));
  if (both_reduce || state_.stage(consumer).asks_for_shared()) return std::nullopt;
  return consumer;
}

const schedule::Step* StageView::CacheWrite() const {
  int s = s_;
  for (size_t i = state_.steps().size(); i-- > 0;) {
    const schedule::Step& step = *state_.steps()[i];
    if (Is<CacheWriteStep>(step) && step.stage() == s) return &step;
    s = NumberBefore(step, s);
  }
  return nullptr;
}

bool StageView::IsCacheWriteStage() const {
  const schedule::Step* const step = CacheWrite();
  return step != nullptr && As<CacheWriteStep>(*step)->joined.empty();
}

bool StageView::IsOfJoinedSums() const {
  const schedule::Step* const step = CacheWrite();
  return step != nullptr && !As<CacheWriteStep>(*step)->joined.empty();
}

int64_t StageView::RowLength() const {
  const std::vector<dag::Axis>& axes = state_.stage(s_).op->axes();
  return axes.empty() ? 1 : axes.back().extent;
}
double StageView::SpatialProduct() const { return Product(state_.stage(s_).op->axes()); }
double StageView::ReduceProduct() const { return Product(state_.stage(s_).op->reduce_axes()); }

bool IsTiledInLevels(const State& state, const dag::AccessAnalysis& analysis, int s) {
  return analysis.needs_multi_level_tiling(s) ||
         (analysis.reduces_columns(s) && IsTiled(state.stage(s)) &&
          !ReducesAcrossThreads(state.stage(s)));
}

bool HasCrossThreadReduction(const State& state, int s) {
  if (ReducesAcrossThreads(state.stage(s))) return true;
  for (int other = 0; other < state.num_stages(); ++other) {
    const schedule::Attach& attach = state.attach(other);
    if (attach.kind == schedule::Attach::kIter && attach.stage == s &&
        ReducesAcrossThreads(state.stage(other)))
      return true;
  }
  return false;
}

bool IsReorderedCopy(const State& state, int s) {
  for (size_t i = state.steps().size(); i-- > 0;) {
    const schedule::Step& step = *state.steps()[i];
    if (const auto* copy = As<CacheReadStep>(step); copy != nullptr && s == copy->stage_id + 1)
      return !copy->order.empty();
    s = NumberBefore(step, s);
  }
  return false;
}

std::vector<int> StepsOf(const State& state, int s) {
  std::vector<int> numbers;
  for (int i = static_cast<int>(state.steps().size()) - 1; i >= 0; --i) {
    const schedule::Step& step = *state.steps()[i];
    if (!ChangesStages(step)) {
      s = NumberBefore(step, s);
      if (step.stage() == s && !Is<schedule::MoveStageStep>(step)) numbers.push_back(i);
      continue;
    }
    // It began here, or began again with fresh loops.
    const bool fresh = !Is<CacheReadStep>(step) && (s == step.stage() || s == step.stage() + 1);
    if (fresh || (Is<CacheReadStep>(step) && s == step.stage() + 1)) break;
    s = NumberBefore(step, s);
  }
  std::reverse(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<int> SplitStepsOf(const State& state, int s) {
  std::vector<int> numbers = StepsOf(state, s);
  std::erase_if(numbers, [&](int number) { return !Is<SplitStep>(*state.steps()[number]); });
  return numbers;
}

namespace {
// The SP step before the RF step that made stage s, if it has so many lengths.
std::optional<int> RfactorSplitOf(const State& state, int s, size_t lengths) {
  for (int i = static_cast<int>(state.steps().size()) - 1; i > 0; --i) {
    const schedule::Step& step = *state.steps()[i];
    if (Is<RfactorStep>(step) && step.stage() == s) {
      const auto* before = As<SplitStep>(*state.steps()[i - 1]);
      const bool has_lengths =
          before != nullptr && before->stage_id == s && before->lengths.size() == lengths;
      return has_lengths ? std::optional(i - 1) : std::nullopt;
    }
    s = NumberBefore(step, s);
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> GroupSplitOf(const State& state, int s) { return RfactorSplitOf(state, s, 2); }
std::optional<int> PartsSplitOf(const State& state, int s) { return RfactorSplitOf(state, s, 1); }

std::optional<int> ClusterStageIn(const State& state, int root) {
  if (PartsSplitOf(state, root)) return std::nullopt;  // a kernel of partial sums
  for (int s = 0; s < root; ++s) {
    const schedule::Attach& attach = state.attach(s);
    if (attach.kind == schedule::Attach::kIter && attach.stage == root && PartsSplitOf(state, s))
      return s;
  }
  return std::nullopt;
}

}  // namespace kiln::search
