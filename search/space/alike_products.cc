#include "search/space/alike_products.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "search/space/matrix_product.h"
#include "search/space/stage_view.h"

namespace kiln::search {
namespace {

bool HaveSameExtents(const std::vector<dag::Axis>& a, const std::vector<dag::Axis>& b) {
  return std::ranges::equal(a, b, {}, &dag::Axis::extent, &dag::Axis::extent);
}

bool HaveOneForm(const dag::Operator& a, const MatrixProduct& product, const dag::Operator& b) {
  if (b.is_placeholder() || !HaveSameExtents(a.axes(), b.axes()) ||
      !HaveSameExtents(a.reduce_axes(), b.reduce_axes()))
    return false;
  const std::optional<MatrixProduct> other = MatrixProductInAnyOrder(b);
  return other && AreAlike(product, *other);
}

}  // namespace

SumSplits SumSplitsOf(const schedule::State& state) {
  SumSplits splits;
  for (int s = 0; s < state.num_stages(); ++s) {
    splits.over_groups += GroupSplitOf(state, s) ? 1 : 0;
    splits.over_blocks += PartsSplitOf(state, s) ? 1 : 0;
    splits.over_clusters += ClusterStageIn(state, s) ? 1 : 0;
  }
  return splits;
}

int NumAlikeBehind(const schedule::State& state, int s) {
  const dag::Operator& op = *state.stage(s).op;
  const std::optional<MatrixProduct> product = MatrixProductInAnyOrder(op);
  if (!product) return 0;
  int count = 0;
  bool is_behind = false;
  for (const dag::OpNode& node : state.initial_dag()->nodes()) {
    if (is_behind && HaveOneForm(op, *product, *node.op)) ++count;
    is_behind = is_behind || node.op->name() == op.name();
  }
  return count;
}

void KeepAlike(const SumSplits& before, int alike, NextStates& states) {
  const auto is_alike = [&](const std::pair<schedule::State, int>& made) {
    const SumSplits now = SumSplitsOf(made.first);
    const auto grows = [&](int SumSplits::* count) {
      return (now.*count - before.*count) * alike == before.*count;
    };
    return grows(&SumSplits::over_groups) && grows(&SumSplits::over_blocks) &&
           grows(&SumSplits::over_clusters);
  };
  if (std::ranges::any_of(states, is_alike)) std::erase_if(states, std::not_fn(is_alike));
}

}  // namespace kiln::search
