#include "client/view/curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

v1::JobStatus JobOf(const std::vector<double>& weights) {
  v1::JobStatus job;
  for (const double weight : weights) job.add_tasks()->mutable_spec()->set_weight(weight);
  return job;
}

v1::Record RecordOf(uint32_t task, double cost_s, int64_t timestamp_s) {
  v1::Record record;
  record.set_task_index(task);
  record.mutable_result()->set_timestamp_s(timestamp_s);
  if (cost_s > 0) {
    record.mutable_result()->add_costs_s(cost_s);
  } else {
    record.mutable_result()->set_error(v1::WRONG_ANSWER_ERROR);
  }
  return record;
}

TEST(Curve, HasAPointWhereTheBestChangesAndAtTheEnd) {
  CurveBuilder builder("a", JobOf({1}), std::nullopt);
  for (const auto& [cost_s, time] : {std::pair(0.0, 100), {8e-3, 101}, {9e-3, 102}, {4e-3, 110}}) {
    builder.Add(RecordOf(0, cost_s, time));
  }
  v1::Record early = RecordOf(0, 1e-3, 111);
  early.mutable_result()->set_stopped_early(true);
  builder.Add(early);
  const Curve curve = builder.Finish();
  ASSERT_THAT(curve.points, SizeIs(3));
  EXPECT_EQ(curve.points[0].trials, 2u);
  EXPECT_EQ(curve.points[0].elapsed_s, 1);
  EXPECT_EQ(curve.points[0].best_s, 8e-3);
  EXPECT_EQ(curve.points[1].trials, 4u);
  EXPECT_EQ(curve.points[1].best_s, 4e-3);
  EXPECT_EQ(curve.points[2].trials, 5u);
  EXPECT_EQ(curve.points[2].elapsed_s, 11);
  EXPECT_EQ(curve.points[2].best_s, 4e-3);
}

TEST(Curve, OfSeveralTasksIsTheWeightedSumOnceEachHasOne) {
  CurveBuilder all("a", JobOf({3, 1}), std::nullopt), second("a", JobOf({3, 1}), 1);
  for (const v1::Record& record :
       {RecordOf(0, 2e-3, 1), RecordOf(1, 5e-3, 2), RecordOf(0, 1e-3, 3)}) {
    all.Add(record);
    second.Add(record);
  }
  const Curve sum = all.Finish();
  ASSERT_THAT(sum.points, SizeIs(2));
  EXPECT_DOUBLE_EQ(sum.points[0].best_s, 11e-3);
  EXPECT_DOUBLE_EQ(sum.points[1].best_s, 8e-3);
  const Curve one = second.Finish();
  ASSERT_THAT(one.points, SizeIs(2));
  EXPECT_EQ(one.points[0].trials, 2u);
  EXPECT_DOUBLE_EQ(one.points[1].best_s, 5e-3);
}

TEST(Curve, OfVariantsIsTheFastest) {
  v1::JobStatus job = JobOf({2, 2});
  job.mutable_tasks(1)->mutable_spec()->set_alternative_of(0);
  CurveBuilder builder("a", job, std::nullopt);
  builder.Add(RecordOf(0, 2e-3, 1));
  builder.Add(RecordOf(1, 1e-3, 2));
  builder.Add(RecordOf(0, 1.5e-3, 2));
  const Curve curve = builder.Finish();
  ASSERT_THAT(curve.points, SizeIs(3));
  EXPECT_DOUBLE_EQ(curve.points[0].best_s, 4e-3);
  EXPECT_DOUBLE_EQ(curve.points[1].best_s, 2e-3);
}

const std::vector<Curve>& TwoCurves() {
  static const auto* curves =
      new std::vector<Curve>{{"first <&> job", {{1, 0, 16e-3}, {10, 2, 2e-3}, {100, 9, 1e-3}}},
                             {"second", {{3, 1, 8e-3}, {50, 4, 1.5e-3}}}};
  return *curves;
}

TEST(Curve, TextHasTheTableAndThePlot) {
  const std::string text = CurveText(TwoCurves(), CurveAxis::kTrials, 60);
  EXPECT_THAT(text, AllOf(HasSubstr("first <&> job"), HasSubstr("16.00 ms"), HasSubstr("8x"),
                          HasSubstr("100 trials"), HasSubstr("* first"), HasSubstr("o second")));
  // The best latency of all stands in the lowest row of the plot, at its end.
  const size_t axis = text.find("+---");
  const size_t row = text.rfind('\n', text.rfind('\n', axis) - 1);
  const std::string lowest = text.substr(row + 1, text.find('\n', row + 1) - row - 1);
  EXPECT_THAT(lowest, HasSubstr("1.000 ms |"));
  EXPECT_EQ(lowest.back(), '*');
  EXPECT_EQ(lowest.size(), 60u);
  EXPECT_THAT(CurveText(TwoCurves(), CurveAxis::kSeconds, 60), HasSubstr("9 seconds"));
}

TEST(Curve, PictureHasALineForEach) {
  const std::string svg = CurveSvg(TwoCurves(), CurveAxis::kTrials, "Best <so far>");
  EXPECT_THAT(svg, AllOf(HasSubstr("<svg "), HasSubstr("</svg>"), HasSubstr("Best &lt;so far&gt;"),
                         HasSubstr("first &lt;&amp;&gt; job: 1.000 ms"),
                         HasSubstr("second: 1.500 ms"), Not(HasSubstr("nan"))));
  // The staircase of the first curve goes right, down, right, down. The best latency lies on the
  // axis.
  EXPECT_THAT(svg, HasSubstr("V356.0\" fill=\"none\" stroke=\"#0072b2\""));
}

TEST(Curve, OfOnePointIsDrawn) {
  const std::vector<Curve> curves = {{"a", {{1, 0, 1e-3}}}};
  EXPECT_THAT(CurveText(curves, CurveAxis::kSeconds, 0), HasSubstr("1.000 ms"));
  EXPECT_THAT(CurveSvg(curves, CurveAxis::kSeconds, ""),
              AllOf(HasSubstr("a: 1.000 ms"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

}  // namespace
}  // namespace kiln::client
