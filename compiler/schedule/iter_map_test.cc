#include "compiler/schedule/iter_map.h"

#include <gtest/gtest.h>

#include <map>

#include "base/status_testing.h"
#include "compiler/ir/evaluate.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/random_schedule_testing.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

// Counts how often the loop nest visits every point of the axes.
std::map<std::vector<int64_t>, int> Visits(const Stage& stage) {
  StatusOr<std::vector<int64_t>> extents = IterExtents(stage);
  KILN_CHECK(extents.ok());
  ir::ExprPool pool;
  std::vector<ir::Expr> vars;
  for (size_t i = 0; i < stage.loops.size(); ++i) vars.push_back(pool.Var(static_cast<int>(i)));
  const IterMap map = MapIters(stage, vars, *extents, pool);
  ir::CompiledExpr inside(map.inside);
  std::vector<ir::CompiledExpr> axes;
  for (int i = 0; i < stage.num_axes(); ++i) axes.emplace_back(map.values[i]);

  std::map<std::vector<int64_t>, int> visits;
  std::vector<ir::Value> at(stage.loops.size(), ir::Value::Int(0));
  while (true) {
    ir::Value value;
    KILN_CHECK(inside.Run(at, nullptr, &value).ok());
    if (value.i != 0) {
      std::vector<int64_t> point;
      for (ir::CompiledExpr& axis : axes) {
        KILN_CHECK(axis.Run(at, nullptr, &value).ok());
        point.push_back(value.i);
      }
      ++visits[point];
    }
    size_t i = at.size();
    while (i > 0 && ++at[i - 1].i == (*extents)[stage.loops[i - 1].iter]) at[--i].i = 0;
    if (i == 0) return visits;
  }
}

void ExpectEveryPointOnce(const Stage& stage, const std::string& context) {
  const auto visits = Visits(stage);
  int64_t points = 1;
  for (const dag::Axis& axis : stage.op->axes()) points *= axis.extent;
  for (const dag::Axis& axis : stage.op->reduce_axes()) points *= axis.extent;
  EXPECT_EQ(static_cast<int64_t>(visits.size()), points) << context;
  for (const auto& [point, count] : visits) {
    EXPECT_EQ(count, 1) << context;
    for (int i = 0; i < stage.num_axes(); ++i) {
      const int spatial = static_cast<int>(stage.op->axes().size());
      const int64_t extent =
          i < spatial ? stage.op->axes()[i].extent : stage.op->reduce_axes()[i - spatial].extent;
      EXPECT_TRUE(point[i] >= 0 && point[i] < extent) << context;
    }
  }
}

TEST(MapIters, InexactSplitsInBothDirections) {
  for (const char* lengths :
       {"[2]", "[5]", "[2, 3]", "[3, 2]", "[4, 4]", "[2, 2, 2]", "[20]", "[3, 5, 2]"}) {
    for (int direction : {0, 1}) {
      for (int extent : {1, 2, 7, 11, 12, 13}) {
        State state(TwoElementwise(extent, 1));
        const std::string text = fmt::format(R"([["SP", 1, 0, 0, {}, {}]])", lengths, direction);
        ASSERT_OK_AND_ASSIGN(auto steps, ParseSteps(text));
        ASSERT_OK(state.Apply(steps[0]));
        ExpectEveryPointOnce(state.stage(1), fmt::format("{} extent {}", text, extent));
      }
    }
  }
}

TEST(MapIters, ExactSplitsNeedNoCondition) {
  State state(TwoElementwise(12, 4));
  ASSERT_OK_AND_ASSIGN(auto steps,
                       ParseSteps(R"([["SP", 1, 0, 0, [2, 3], 1], ["FU", 1, [2, 3]]])"));
  for (const StepPtr& step : steps) ASSERT_OK(state.Apply(step));
  ASSERT_OK_AND_ASSIGN(auto extents, IterExtents(state.stage(1)));
  ir::ExprPool pool;
  const std::vector<ir::Expr> vars = {pool.Var(0), pool.Var(1), pool.Var(2)};
  EXPECT_TRUE(MapIters(state.stage(1), vars, extents, pool).inside->is_const_int(1));
}

TEST(MapIters, RandomSchedulesVisitEveryPointOnce) {
  const dag::DagPtr dags[] = {MatmulRelu(5, 7, 6), Softmax(3, 10), Conv2d({4, 2, 3, 3, 1, 1}, true),
                              ReduceRows(dag::Combiner::kSum, 3, 4, 5)};
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const State state = RandomSchedule(dags[seed % 4], seed, 12);
    for (int i = 0; i < state.num_stages(); ++i) {
      if (state.stage(i).is_placeholder()) continue;
      ExpectEveryPointOnce(state.stage(i),
                           fmt::format("seed {} stage {} {}", seed, i, PrintSteps(state.steps())));
    }
  }
}

TEST(IterExtents, RegionsAndBlanks) {
  State state(TwoElementwise(12, 4));
  ASSERT_OK_AND_ASSIGN(auto steps, ParseSteps(R"([["SP", 1, 0, 0, [5], 1]])"));
  ASSERT_OK(state.Apply(steps[0]));
  const int64_t region[] = {7, 2};
  ASSERT_OK_AND_ASSIGN(auto extents, IterExtents(state.stage(1), region));
  EXPECT_THAT(extents, testing::ElementsAre(7, 2, 2, 5));
  ASSERT_OK_AND_ASSIGN(steps, ParseSteps(R"([["SP", 1, 2, 0, [0], 1]])"));
  ASSERT_OK(state.Apply(steps[0]));
  EXPECT_THAT(IterExtents(state.stage(1)),
              StatusIs(StatusCode::kInvalidArgument, testing::HasSubstr("blank length")));
}

}  // namespace
}  // namespace kiln::schedule
