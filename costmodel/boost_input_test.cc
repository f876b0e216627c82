#include "costmodel/boost_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kiln::costmodel {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

FloatMatrix Rows(const std::vector<std::vector<float>>& rows) {
  FloatMatrix matrix(static_cast<int>(rows[0].size()));
  for (const auto& row : rows) std::copy(row.begin(), row.end(), matrix.AddRow().begin());
  return matrix;
}

TEST(TrainingSetTest, KeepsDistinctRowsAndChangingColumns) {
  const FloatMatrix a = Rows({{1, 7, 0, 2}, {1, 8, 0, 2}}), b = Rows({{1, 7, 0, 2}, {1, 7, 0, 3}});
  const Pack packs[] = {{.rows = &a}, {.rows = &b}};
  const BoostInput set(packs, Objective::kThroughput);
  EXPECT_THAT(set.columns(), ElementsAre(1, 3));
  EXPECT_EQ(set.rows(), Rows({{7, 2}, {8, 2}, {7, 3}}));
  EXPECT_EQ(set.packs(), 2);
}

TEST(TrainingSetTest, RowsThatAreAllEqualLeaveNoColumn) {
  const FloatMatrix a = Rows({{1, 2}});
  const Pack packs[] = {{.rows = &a}, {.rows = &a}};
  EXPECT_TRUE(BoostInput(packs, Objective::kTime).columns().empty());
}

TEST(TrainingSetTest, LossAndDerivatives) {
  const FloatMatrix a = Rows({{1}, {2}}), b = Rows({{2}, {2}, {3}});
  const Pack packs[] = {{.rows = &a, .throughput = 1, .weight = 1},
                        {.rows = &b, .throughput = 0.5, .weight = 3}};
  const BoostInput set(packs, Objective::kThroughput);
  const std::vector<float> outputs = {0.25, 0.5, 0.125};  // outputs of the rows 1, 2, 3
  // The sums are 0.75 and 1.125, which are off by -0.25 and 0.625.
  EXPECT_NEAR(set.Loss(outputs), 0.5 * (0.0625 + 3 * 0.390625) / 4, 1e-6);
  std::vector<float> gradient(3), hessian(3);
  set.Derive(outputs, gradient, hessian);
  EXPECT_THAT(gradient, ElementsAre(-0.25, -0.25 + 2 * 1.875, 1.875));
  EXPECT_THAT(hessian, ElementsAre(2, 2 + 2 * 9, 9));

  // The gradient agrees with differences of the loss.
  for (size_t i = 0; i < 3; ++i) {
    std::vector<float> more = outputs, less = outputs;
    more[i] += 1e-2F;
    less[i] -= 1e-2F;
    const double slope = (set.Loss(more) - set.Loss(less)) / 2e-2 * 4;
    EXPECT_THAT(gradient[i], FloatNear(static_cast<float>(slope), 1e-3F)) << i;
  }
}

TEST(TrainingSetTest, TimesAddUpAndAreComparedByTheirLogarithms) {
  const FloatMatrix a = Rows({{1}, {2}}), b = Rows({{2}, {2}, {3}}), c = Rows({{4}});
  const Pack packs[] = {{.rows = &a, .throughput = 1, .weight = 1},
                        {.rows = &b, .throughput = 0.5, .weight = 3},
                        {.rows = &c, .throughput = 0, .weight = 1}};
  const BoostInput set(packs, Objective::kTime);
  const auto log = [](double x) { return static_cast<float>(std::log(x)); };
  // The times 0.5 + 0.5 = 1 and 0.5 + 0.5 + 1 = 2 are right. A failure may take any longer time.
  const std::vector<float> right = {log(0.5), log(0.5), log(1), log(1000)};
  EXPECT_NEAR(set.Loss(right), 0, 1e-12);
  // One row takes longer: 1.25 and 2 - 0.5 = 1.5. A failure looks fast.
  const std::vector<float> outputs = {log(0.75), log(0.5), log(0.5), log(1)};
  const auto square = [](double x) { return x * x; };
  EXPECT_NEAR(set.Loss(outputs),
              0.5 * (square(log(1.25)) + 3 * square(log(0.75)) + square(log(0.01))) / 5, 1e-6);
  std::vector<float> gradient(4), hessian(4);
  set.Derive(outputs, gradient, hessian);
  for (size_t i = 0; i < 4; ++i) {
    std::vector<float> more = outputs, less = outputs;
    more[i] += 1e-2F;
    less[i] -= 1e-2F;
    const double slope = (set.Loss(more) - set.Loss(less)) / 2e-2 * 5;
    EXPECT_THAT(gradient[i], FloatNear(static_cast<float>(slope), 1e-3F)) << i;
  }
  EXPECT_NEAR(hessian[0], 0.75 / 1.25, 1e-6);
  EXPECT_NEAR(hessian[1], 0.5 / 1.25 + 3 * 2 * 0.5 / 1.5, 1e-6);
}

TEST(TrainingSetTest, ScoresAreThroughputs) {
  const std::vector<float> outputs = {0.25, 0.5};
  EXPECT_DOUBLE_EQ(Score(Objective::kThroughput, outputs), 0.75);
  EXPECT_NEAR(Score(Objective::kTime, outputs), 1 / (std::exp(0.25) + std::exp(0.5)), 1e-7);
}

TEST(TrainingSetTest, ANewtonStepNeverOvershoots) {
  // All of the 40 different rows of the pack move the same way: the plain second derivative would
  // overshoot forty times.
  FloatMatrix many(1);
  for (int i = 0; i < 40; ++i) many.AddRow()[0] = static_cast<float>(i);
  const Pack packs[] = {{.rows = &many, .throughput = 1}};
  const BoostInput set(packs, Objective::kThroughput);
  std::vector<float> outputs(40), gradient(40), hessian(40);
  set.Derive(outputs, gradient, hessian);
  for (size_t i = 0; i < 40; ++i) outputs[i] -= gradient[i] / hessian[i];
  EXPECT_NEAR(set.Loss(outputs), 0, 1e-9);
}

TEST(TrainingSetTest, RanksComparePairs) {
  const FloatMatrix a = Rows({{1}}), b = Rows({{2}}), c = Rows({{3}}), d = Rows({{4}});
  const Pack packs[] = {{.rows = &a, .throughput = 0.5},
                        {.rows = &b, .throughput = 1},
                        {.rows = &c, .throughput = 0},
                        {.rows = &d, .throughput = 0.5}};
  const BoostInput set(packs, Objective::kRank);
  EXPECT_EQ(set.base(), 0);
  const std::vector<float> outputs = {0.3F, 0.1F, -0.2F, 0.7F};
  // All pairs count but those of equal throughput: b before a, c, d; a and d before c.
  const auto loss = [&](int fast, int slow) {
    return std::log1p(std::exp(outputs[slow] - outputs[fast]));
  };
  EXPECT_NEAR(set.Loss(outputs),
              (loss(1, 0) + loss(1, 2) + loss(1, 3) + loss(0, 2) + loss(3, 2)) / 5, 1e-6);
  std::vector<float> gradient(4), hessian(4);
  set.Derive(outputs, gradient, hessian);
  for (size_t i = 0; i < 4; ++i) {
    constexpr double kStep = 1e-3;
    std::vector<float> up = outputs, down = outputs;
    up[i] += kStep;
    down[i] -= kStep;
    EXPECT_NEAR(gradient[i], 5 * (set.Loss(up) - set.Loss(down)) / (2 * kStep), 2e-3) << i;
    EXPECT_GT(hessian[i], 0);
  }
  EXPECT_LT(set.Loss(std::vector<float>{0, 9, -9, 0}), 1e-3);
  EXPECT_DOUBLE_EQ(Score(Objective::kRank, std::vector<float>{0.5F, 0.25F}), 0.75);
}

// Each of many programs is compared with a few others.
TEST(TrainingSetTest, RanksOfManyProgramsAreLearnedFromSome) {
  std::vector<FloatMatrix> rows;
  for (int i = 0; i < 500; ++i) rows.push_back(Rows({{static_cast<float>(i)}}));
  std::vector<Pack> packs;
  for (int i = 0; i < 500; ++i)
    packs.push_back({.rows = &rows[static_cast<size_t>(i)],
                     .throughput = static_cast<float>(1 + (i * 7919) % 500) / 500});
  const BoostInput set(packs, Objective::kRank);
  std::vector<float> right, wrong;
  for (const Pack& pack : packs) {
    right.push_back(1000 * pack.throughput);
    wrong.push_back(-1000 * pack.throughput);
  }
  EXPECT_LT(set.Loss(right), 0.2);
  EXPECT_GT(set.Loss(wrong), 100);
  std::vector<float> gradient(500), hessian(500);
  set.Derive(std::vector<float>(500), gradient, hessian);
  const auto best = std::min_element(gradient.begin(), gradient.end()) - gradient.begin();
  EXPECT_GT(packs[static_cast<size_t>(best)].throughput, 0.8);
}

}  // namespace
// Estimates of throughputs are off by 0.25 and -0.5, which the outputs should correct.
TEST(TrainingSetTest, EstimatesOfThroughputsAreCorrected) {
  const FloatMatrix a = Rows({{1}}), b = Rows({{2}});
  const std::vector<float> of_a = {0.75F}, of_b = {1};
  const Pack packs[] = {{.rows = &a, .throughput = 1, .estimates = of_a},
                        {.rows = &b, .throughput = 0.5, .estimates = of_b}};
  const BoostInput set(packs, Objective::kThroughput);
  std::vector<float> gradient(2), hessian(2);
  set.Derive(std::vector<float>{0, 0}, gradient, hessian);
  EXPECT_EQ(gradient, (std::vector<float>{-0.25F, 0.5F}));
  EXPECT_EQ(set.Loss(std::vector<float>{0.25F, -0.5F}), 0);
  EXPECT_GT(set.Loss(std::vector<float>{0, 0}), 0);
  // For kRank only the order counts, and the estimates have it wrong.
  const BoostInput pairs(packs, Objective::kRank);
  EXPECT_NEAR(pairs.Loss(std::vector<float>{0, 0}), std::log1p(std::exp(0.25)), 1e-6);
  EXPECT_NEAR(pairs.Loss(std::vector<float>{1, 0}), std::log1p(std::exp(-0.75)), 1e-6);
}

TEST(TrainingSetTest, OutputsAreWhatEstimatesAreOffBy) {
  // Both programs have the same row, with different estimates.
  const FloatMatrix a = Rows({{1}, {2}}), b = Rows({{2}});
  const auto log = [](double x) { return static_cast<float>(std::log(x)); };
  const std::vector<float> of_a = {log(0.3), log(0.2)}, of_b = {log(0.5)};
  const Pack packs[] = {{.rows = &a, .throughput = 1, .weight = 1, .estimates = of_a},
                        {.rows = &b, .throughput = 0.5, .weight = 2, .estimates = of_b}};
  const BoostInput set(packs, Objective::kTime);
  // The estimates are 0.5 for 1 and 0.5 for 2: too short by factors of 2 and 4.
  EXPECT_NEAR(set.base(), 0.5 * (std::log(2) + std::log(4)), 1e-6);
  EXPECT_NEAR(set.Loss(std::vector<float>{log(2), log(2)}), 0.5 * 2 * std::pow(log(2), 2) / 3,
              1e-6);
  // These outputs are right: 0.3 * 2/3 + 0.2 * 4 = 1, 0.5 * 4 = 2.
  EXPECT_NEAR(set.Loss(std::vector<float>{log(2.0 / 3), log(4)}), 0, 1e-6);
  const std::vector<float> outputs = {log(3), log(2)};  // 1.3, 1
  std::vector<float> gradient(2), hessian(2);
  set.Derive(outputs, gradient, hessian);
  EXPECT_NEAR(gradient[0], std::log(1.3) * 0.9 / 1.3, 1e-6);
  EXPECT_NEAR(gradient[1], std::log(1.3) * 0.4 / 1.3 - 2 * std::log(2), 1e-6);
  EXPECT_NEAR(hessian[1], 0.4 / 1.3 + 2, 1e-6);
}

}  // namespace kiln::costmodel
