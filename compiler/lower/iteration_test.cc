// Checks that loop nests of splits and fuses visit every point once, in agreement with
// schedule::MapIters.
#include "compiler/lower/iteration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/status_testing.h"
#include "compiler/ir/evaluate.h"
#include "compiler/lower/state_testing.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/iter_map.h"
#include "compiler/schedule/random_schedule_testing.h"

namespace kiln::lower {
namespace {

using schedule::Stage;
using testing::ElementsAre;

std::vector<int64_t> AxisExtents(const Stage& stage) {
  std::vector<int64_t> extents;
  for (const dag::Axis& axis : stage.op->axes()) extents.push_back(axis.extent);
  for (const dag::Axis& axis : stage.op->reduce_axes()) extents.push_back(axis.extent);
  return extents;
}

// The iterators of a stage at one position of its loops.
class Nest {
 public:
  Nest(const Stage& stage, std::span<const int64_t> axis_extents)
      : stage_(stage), simplifier_(pool_), extents_(lower::IterExtents(stage, axis_extents)) {
    std::vector<arith::Linear> loops;
    for (const auto& loop : stage.loops) {
      loops.push_back(simplifier_.Var(simplifier_.AddVar(extents_[loop.iter])));
    }
    for (const arith::Linear& value : IterValues(stage, extents_, loops, simplifier_)) {
      values_.emplace_back(simplifier_.ToExpr(value));
    }
    guards_ = SplitGuards(stage, extents_);
  }

  const std::vector<int64_t>& extents() const { return extents_; }

  int64_t Value(int iter, std::span<const ir::Value> at) {
    ir::Value value;
    KILN_CHECK(values_[iter].Run(at, nullptr, &value).ok());
    return value.i;
  }

  bool Inside(std::span<const ir::Value> at) {
    return std::all_of(guards_.begin(), guards_.end(),
                       [&](const SplitGuard& g) { return Value(g.iter, at) < g.extent; });
  }

  std::vector<int64_t> Point(std::span<const ir::Value> at) {
    std::vector<int64_t> point;
    for (int axis = 0; axis < stage_.num_axes(); ++axis) point.push_back(Value(axis, at));
    return point;
  }

  template <typename F>
  void ForEach(const F& f) {
    std::vector<ir::Value> at(stage_.loops.size(), ir::Value::Int(0));
    while (true) {
      f(std::span<const ir::Value>(at));
      size_t i = at.size();
      while (i > 0 && ++at[i - 1].i == extents_[stage_.loops[i - 1].iter]) at[--i].i = 0;
      if (i == 0) return;
    }
  }

 private:
  const Stage& stage_;
  ir::ExprPool pool_;
  arith::Simplifier simplifier_;
  std::vector<int64_t> extents_;
  std::vector<ir::CompiledExpr> values_;
  std::vector<SplitGuard> guards_;
};

void ExpectEveryPointOnce(const Stage& stage, std::span<const int64_t> axis_extents,
                          const std::string& context) {
  Nest nest(stage, axis_extents);
  std::map<std::vector<int64_t>, int> visits;
  nest.ForEach([&](std::span<const ir::Value> at) {
    if (nest.Inside(at)) ++visits[nest.Point(at)];
  });
  size_t points = 1;
  for (int64_t extent : axis_extents) points *= static_cast<size_t>(extent);
  EXPECT_EQ(visits.size(), points) << context;
  for (const auto& [point, count] : visits) {
    EXPECT_EQ(count, 1) << context;
    for (size_t i = 0; i < point.size(); ++i) {
      EXPECT_TRUE(point[i] >= 0 && point[i] < axis_extents[i]) << context;
    }
  }
}

// Returns true if both count alike, so that positions mean the same. They differ for a split with a
// length above its extent, and for an inexact split from outer to inner, which is one mixed radix
// number here.
bool CountAlike(const Stage& stage, const std::vector<int64_t>& ours,
                const std::vector<int64_t>& theirs) {
  if (ours != theirs) return false;
  const std::vector<SplitGuard> guards = SplitGuards(stage, ours);
  return std::all_of(
      stage.relations.begin(), stage.relations.end(), [&](const schedule::Relation& r) {
        if (r.kind == schedule::Relation::kFuse || r.inner_to_outer) return true;
        return std::none_of(guards.begin(), guards.end(),
                            [&](const SplitGuard& g) { return g.iter == r.parents[0]; });
      });
}

// Returns whether there was something to compare.
bool ExpectAgreement(const Stage& stage, const std::string& context) {
  Nest nest(stage, AxisExtents(stage));
  const auto extents = schedule::IterExtents(stage);
  KILN_CHECK(extents.ok());
  if (!CountAlike(stage, nest.extents(), *extents)) return false;
  ir::ExprPool pool;
  std::vector<ir::Expr> vars;
  for (size_t i = 0; i < stage.loops.size(); ++i) vars.push_back(pool.Var(static_cast<int>(i)));
  const schedule::IterMap map = schedule::MapIters(stage, vars, *extents, pool);
  ir::CompiledExpr inside(map.inside);
  std::vector<ir::CompiledExpr> axes;
  for (int i = 0; i < stage.num_axes(); ++i) axes.emplace_back(map.values[i]);
  nest.ForEach([&](std::span<const ir::Value> at) {
    ir::Value value;
    KILN_CHECK(inside.Run(at, nullptr, &value).ok());
    ASSERT_EQ(nest.Inside(at), value.i != 0) << context;
    if (value.i == 0) return;
    for (int i = 0; i < stage.num_axes(); ++i) {
      KILN_CHECK(axes[i].Run(at, nullptr, &value).ok());
      ASSERT_EQ(nest.Value(i, at), value.i) << context << ", axis " << i;
    }
  });
  return true;
}

// Makes a state with one axis of that extent in stage 1, under these steps.
schedule::State OneAxis(int64_t extent, std::string_view steps) {
  return StateFrom(fmt::format("input A: float32[{0}]\nB[i: {0}] = A[i] + 1.0", extent), steps);
}

std::vector<int64_t> LoopExtents(const Stage& stage, std::span<const int64_t> axis_extents) {
  const std::vector<int64_t> extents = lower::IterExtents(stage, axis_extents);
  std::vector<int64_t> loops;
  for (const auto& loop : stage.loops) loops.push_back(extents[loop.iter]);
  return loops;
}

TEST(Iteration, RandomSchedulesVisitEveryPointOnce) {
  const dag::DagPtr dags[] = {schedule::MatmulRelu(4, 6, 5), schedule::Softmax(3, 7),
                              schedule::ArgMaxRows(5, 7),
                              schedule::Conv2d({5, 2, 3, 3, 1, 1}, true), schedule::AvgPool(3, 2)};
  int compared = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    for (size_t d = 0; d < std::size(dags); ++d) {
      const schedule::State state =
          schedule::RandomSchedule(dags[d], seed, 2 + static_cast<int>(seed % 12));
      for (int s = 0; s < state.num_stages(); ++s) {
        const Stage& stage = state.stage(s);
        if (stage.is_placeholder()) continue;
        const std::string context = fmt::format("DAG {}, seed {}, stage {} of {}", d, seed, s,
                                                schedule::PrintSteps(state.steps()));
        ExpectEveryPointOnce(stage, AxisExtents(stage), context);
        compared += ExpectAgreement(stage, context);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

TEST(Iteration, LengthsAreClampedToWhatIsLeft) {
  const int64_t extents[] = {5};
  const schedule::State inner = OneAxis(5, R"([["SP", 1, 0, 5, [4, 8], 1]])");
  EXPECT_THAT(LoopExtents(inner.stage(1), extents), ElementsAre(1, 1, 5));
  const schedule::State outer = OneAxis(5, R"([["SP", 1, 0, 5, [8, 4], 0]])");
  EXPECT_THAT(LoopExtents(outer.stage(1), extents), ElementsAre(5, 1, 1));
  EXPECT_TRUE(SplitGuards(inner.stage(1), lower::IterExtents(inner.stage(1), extents)).empty());
}

TEST(Iteration, LengthsOfLoopsBoundToThreadsAreKept) {
  const schedule::State state = OneAxis(5, R"([["SP", 1, 0, 5, [8], 1], ["AN", 1, 1, 6]])");
  const int64_t extents[] = {5};
  EXPECT_THAT(LoopExtents(state.stage(1), extents), ElementsAre(1, 8));
  ExpectEveryPointOnce(state.stage(1), extents, "threads");
}

TEST(Iteration, RegionsSmallerThanTheTensor) {
  const schedule::State state =
      OneAxis(64, R"([["SP", 1, 0, 64, [4, 4], 1], ["FU", 1, [0, 1]], ["SP", 1, 0, 0, [3], 0]])");
  for (int64_t extent = 1; extent <= 20; ++extent) {
    const int64_t extents[] = {extent};
    ExpectEveryPointOnce(state.stage(1), extents, fmt::format("extent {}", extent));
  }
}

TEST(Iteration, FuseOfASplitGivesTheAxisBack) {
  const schedule::State state = OneAxis(12, R"([["SP", 1, 0, 12, [3], 1], ["FU", 1, [0, 1]]])");
  ir::ExprPool pool;
  arith::Simplifier simplifier(pool);
  const int64_t axis[] = {12};
  const std::vector<int64_t> extents = lower::IterExtents(state.stage(1), axis);
  const arith::Linear loops[] = {simplifier.Var(simplifier.AddVar(12))};
  const auto values = IterValues(state.stage(1), extents, loops, simplifier);
  const arith::Linear whole = simplifier.Recombine(values[0]);
  EXPECT_EQ(whole, loops[0]);
  EXPECT_TRUE(SplitGuards(state.stage(1), extents).empty());
}

TEST(Iteration, NestedInexactSplitsHaveOneGuardEach) {
  const schedule::State state =
      OneAxis(13, R"([["SP", 1, 0, 13, [5], 1], ["SP", 1, 1, 5, [2], 1]])");
  const int64_t extents[] = {13};
  EXPECT_THAT(LoopExtents(state.stage(1), extents), ElementsAre(3, 3, 2));
  const auto guards = SplitGuards(state.stage(1), lower::IterExtents(state.stage(1), extents));
  ASSERT_EQ(guards.size(), 2u);
  EXPECT_EQ(guards[0].extent, 13);
  EXPECT_EQ(guards[1].extent, 5);
  ExpectEveryPointOnce(state.stage(1), extents, "13 by 5 by 2");
}

}  // namespace
}  // namespace kiln::lower
