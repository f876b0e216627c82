#include "costmodel/calibration_fit.h"

#include <algorithm>
#include <memory>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "costmodel/analytic_model.h"

namespace kiln::costmodel {
namespace {

// Programs of one kernel with random columns. Their times are those of a model with some row.
class Programs {
 public:
  explicit Programs(uint64_t seed) : rng_(seed) {
    const auto columns = AnalyticModel::Columns();
    names_.assign(columns.begin(), columns.end());
  }

  std::span<const std::string_view> names() const { return names_; }

  std::vector<MeasuredPrograms> Measured(const device::Calibration& row) {
    auto model = AnalyticModel::Make(names_, row);
    KILN_CHECK(model.ok(), "{}", Message(model.status()));
    std::vector<MeasuredPrograms> all(3);
    for (MeasuredPrograms& workload : all) {
      for (int i = 0; i < 40; ++i) {
        auto rows = std::make_shared<const FloatMatrix>(Program());
        const FloatMatrix* const one[] = {rows.get()};
        workload.push_back({.rows = rows, .task = 1, .cost_s = -(*model)->Predict(one)[0]});
      }
    }
    return all;
  }

 private:
  FloatMatrix Program() {
    FloatMatrix program(static_cast<int>(names_.size()));
    const std::span<float> row = program.AddRow();
    for (size_t c = 0; c < names_.size(); ++c)
      row[c] = names_[c] == "is_gpu"         ? 1.0f
               : names_[c] == "kernel_index" ? 0.0f
                                             : static_cast<float>(UniformReal(rng_) * 8);
    return program;
  }

  std::vector<std::string_view> names_;
  Rng rng_;
};

TEST(CalibrationFit, FindsWhatADeviceIsByItsTimes) {
  device::Calibration true_row;
  true_row.request_latency *= 6;
  true_row.instruction_latency *= 4;
  Programs programs(1);
  const auto measured = programs.Measured(true_row);
  ASSERT_OK_AND_ASSIGN(const CrossFit fit, FitLeavingOneOut(programs.names(), measured,
                                                            /*gpu=*/true, {}, {.steps = 300}));
  EXPECT_TRUE(fit.better);
  EXPECT_EQ(fit.programs, 120u);
  EXPECT_LT(fit.after.loss, 0.3 * fit.before.loss);
  EXPECT_GT(fit.after.spearman, fit.before.spearman);
  // The same fit gives the same row again.
  ASSERT_OK_AND_ASSIGN(const CrossFit again, FitLeavingOneOut(programs.names(), measured,
                                                              /*gpu=*/true, {}, {.steps = 300}));
  EXPECT_EQ(again.row, fit.row);
}

TEST(CalibrationFit, ARowStaysWhereTheOtherIsBetterByTooLittle) {
  device::Calibration true_row;
  true_row.request_latency *= 6;
  Programs programs(1);
  const auto measured = programs.Measured(true_row);
  ASSERT_OK_AND_ASSIGN(const CrossFit fit,
                       FitLeavingOneOut(programs.names(), measured, /*gpu=*/true, {},
                                        {.steps = 200, .least_gain = 0.999999}));
  EXPECT_LT(fit.after.loss, fit.before.loss);
  EXPECT_FALSE(fit.better);
  EXPECT_EQ(fit.row, device::Calibration());
}

TEST(CalibrationFit, ARowThatIsRightStaysAsItIs) {
  Programs programs(2);
  const auto measured = programs.Measured({});
  ASSERT_OK_AND_ASSIGN(const CrossFit fit, FitLeavingOneOut(programs.names(), measured,
                                                            /*gpu=*/true, {}, {.steps = 100}));
  EXPECT_FALSE(fit.better);
  EXPECT_EQ(fit.row, device::Calibration());
}

TEST(CalibrationFit, RefusesNothingAndColumnsItCannotRead) {
  Programs programs(3);
  const std::vector<MeasuredPrograms> none(2);
  EXPECT_THAT(FitLeavingOneOut(programs.names(), none, true, {}).status(),
              StatusIs(StatusCode::kInvalidArgument, testing::HasSubstr("0 workloads")));
  const auto measured = programs.Measured({});
  EXPECT_FALSE(FitLeavingOneOut(programs.names().subspan(1), measured, true, {}).ok());
  const std::vector<MeasuredPrograms> one = {measured[0], {}};
  EXPECT_THAT(FitLeavingOneOut(programs.names(), one, true, {}).status(),
              StatusIs(StatusCode::kInvalidArgument, testing::HasSubstr("expected 2 to fit to")));
  // A fit that was stopped returns its start.
  std::stop_source stop;
  stop.request_stop();
  ASSERT_OK_AND_ASSIGN(
      const device::Calibration row,
      CalibrationFit::Search(programs.names(), measured, true, {}, {.stop = stop.get_token()}));
  EXPECT_EQ(row, device::Calibration());
}

}  // namespace
}  // namespace kiln::costmodel
