#include "costmodel/mean_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/status_testing.h"

namespace kiln::costmodel {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

// A model in which each row takes `seconds` times its first column.
class Linear final : public CostModel {
 public:
  Linear(std::string name, double seconds) : name_(std::move(name)), seconds_(seconds) {}
  std::string_view name() const override { return name_; }
  Status Update(std::vector<Sample>) override { return OkStatus(); }
  std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const override {
    std::vector<double> scores;
    for (const FloatMatrix* program : programs) {
      double score = program->rows() == 0 ? -std::numeric_limits<double>::infinity() : 0;
      for (const double row : PredictRows(*program)) score += row;
      scores.push_back(score);
    }
    return scores;
  }
  std::vector<double> PredictRows(const FloatMatrix& program) const override {
    std::vector<double> scores;
    for (int r = 0; r < program.rows(); ++r) scores.push_back(-seconds_ * program.row(r)[0]);
    return scores;
  }
  bool trained() const override { return true; }
  StatusOr<std::string> Save() const override { return name_; }
  Status Load(std::string_view) override { return OkStatus(); }

 private:
  const std::string name_;
  const double seconds_;
};

TEST(MeanModelTest, IsHalfwayBetweenTwo) {
  MeanModel model(std::make_shared<Linear>("short", 1.0), std::make_shared<Linear>("long", 4.0));
  EXPECT_EQ(model.name(), "short and long");
  EXPECT_TRUE(model.trained());
  FloatMatrix two(1), none(1);
  two.AddRow()[0] = 1;
  two.AddRow()[0] = 3;
  const FloatMatrix* const programs[] = {&two, &none};
  EXPECT_THAT(model.Predict(programs),
              ElementsAre(DoubleNear(-8, 1e-12), -std::numeric_limits<double>::infinity()));
  EXPECT_THAT(model.PredictRows(two), ElementsAre(DoubleNear(-2, 1e-12), DoubleNear(-6, 1e-12)));
  ASSERT_OK_AND_ASSIGN(const std::string bytes, model.Save());
  EXPECT_OK(model.Load(bytes));
  EXPECT_FALSE(model.Load("long").ok());
}

}  // namespace
}  // namespace kiln::costmodel
