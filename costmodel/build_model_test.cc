#include "costmodel/build_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "costmodel/rank_correlation.h"

namespace kiln::costmodel {
namespace {

constexpr std::string_view kColumns[] = {"row_thread_accesses", "row_serial_trips",
                                         "row_register_bytes", "something"};

// A program of one store, with so many accesses; `something` makes its build slower.
std::shared_ptr<const FloatMatrix> Program(double accesses, double something) {
  auto rows = std::make_shared<FloatMatrix>(4);
  const std::span<float> row = rows->AddRow();
  row[0] = static_cast<float>(std::log2(accesses + 1));
  row[1] = 1;
  row[3] = static_cast<float>(something);
  return rows;
}

double SecondsOf(const BuildModel& model, const FloatMatrix& rows) {
  return model.Seconds({{&rows}})[0];
}

TEST(BuildModel, EstimatesByTheAccessesBeforeItHasSeenBuilds) {
  ASSERT_OK_AND_ASSIGN(const auto model, BuildModel::Make(kColumns, 1));
  const double few_s = SecondsOf(*model, *Program(4, 0));
  EXPECT_GT(few_s, 0);
  EXPECT_GT(SecondsOf(*model, *Program(400, 0)), few_s);
  EXPECT_EQ(SecondsOf(*model, *Program(4, 7)), few_s);
}

TEST(BuildModel, LearnsWhatTheBuildsOfAJobTake) {
  ASSERT_OK_AND_ASSIGN(const auto model, BuildModel::Make(kColumns, 1));
  Rng rng(3);
  const auto build = [&] {
    const double accesses = std::exp2(10 * UniformReal(rng)), something = UniformReal(rng);
    return Built{Program(accesses, something),
                 0.1 * (1 + std::log2(accesses)) * std::exp(2 * something)};
  };
  std::vector<Built> builds;
  for (int i = 0; i < 300; ++i) builds.push_back(build());
  ASSERT_OK(model->Learn(builds));
  std::vector<Built> others;
  std::vector<const FloatMatrix*> programs;
  std::vector<double> seconds;
  for (int i = 0; i < 100; ++i) {
    others.push_back(build());
    programs.push_back(others.back().rows.get());
    seconds.push_back(others.back().build_s);
  }
  const std::vector<double> predicted = model->Seconds(programs);
  EXPECT_GT(Spearman(predicted, seconds), 0.95);
  double error = 0;
  for (size_t i = 0; i < seconds.size(); ++i) error += std::log(predicted[i] / seconds[i]) / 100;
  EXPECT_NEAR(error, 0, 0.1);
}

TEST(BuildModel, AProgramWithoutRowsIsNeverBuilt) {
  ASSERT_OK_AND_ASSIGN(const auto model, BuildModel::Make(kColumns, 1));
  EXPECT_EQ(SecondsOf(*model, FloatMatrix(4)), std::numeric_limits<double>::infinity());
}

TEST(BuildModel, RefusesColumnsThatTheEstimateNeeds) {
  constexpr std::string_view kOthers[] = {"something"};
  EXPECT_THAT(BuildModel::Make(kOthers, 1).status(),
              StatusIs(StatusCode::kInvalidArgument, testing::HasSubstr("'row_thread_accesses'")));
}

TEST(BuildModel, RefusesATimeThatIsNone) {
  ASSERT_OK_AND_ASSIGN(const auto model, BuildModel::Make(kColumns, 1));
  EXPECT_THAT(model->Learn({{Built{Program(4, 0), 0}}}),
              StatusIs(StatusCode::kInvalidArgument, testing::HasSubstr("positive time")));
}

}  // namespace
}  // namespace kiln::costmodel
