#include "search/tuning/objective.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kiln::search {
namespace {

// Checks that the slopes are those of the values.
void CheckSlopes(const Objective& objective, std::vector<double> latencies_s) {
  const std::vector<double> slopes = objective.slopes(latencies_s);
  ASSERT_EQ(slopes.size(), latencies_s.size());
  for (size_t i = 0; i < latencies_s.size(); ++i) {
    std::vector<double> less = latencies_s;
    const double step_s = 1e-6 * latencies_s[i];
    less[i] -= step_s;
    const double want = (objective.value(latencies_s) - objective.value(less)) / step_s;
    EXPECT_NEAR(slopes[i], want, 1e-4 * (1 + want)) << i;
  }
}

TEST(Objective, Values) {
  const std::vector<VariantGroup> groups = {{.weight = 1}, {.weight = 3}};
  const std::vector<double> x = {4e-3, 1e-3};
  const Objective sum = MakeObjective(ObjectiveKind::kWeightedSum, groups);
  const Objective mean = MakeObjective(ObjectiveKind::kGeometricMean, groups);
  const Objective max = MakeObjective(ObjectiveKind::kMax, groups);
  EXPECT_NEAR(sum.value(x), 7e-3, 1e-15);
  EXPECT_NEAR(mean.value(x), std::pow(4.0, 0.25) * 1e-3, 1e-15);
  EXPECT_NEAR(max.value(x), 4e-3, 1e-15);
  for (const Objective* objective : {&sum, &mean, &max}) CheckSlopes(*objective, x);
  // One percent of a group's latency is worth the group's weight.
  EXPECT_NEAR(3 * mean.slopes(x)[0] * x[0], mean.slopes(x)[1] * x[1], 1e-15);
  // If both are equally long, both have a slope.
  const std::vector<double> even = {3e-3, 1e-3};
  EXPECT_EQ(max.slopes(even)[0], 1);
  EXPECT_EQ(max.slopes(even)[1], 3);
}

TEST(Objective, NetworksCountAsOne) {
  const std::vector<VariantGroup> groups = {{2, "a"}, {5, ""}, {1, "b"}, {1, "a"}};
  const std::vector<double> x = {1e-3, 1e-3, 4e-3, 7e-3};  // a: 9, alone: 5, b: 4 ms
  EXPECT_NEAR(MakeObjective(ObjectiveKind::kMax, groups).value(x), 9e-3, 1e-15);
  EXPECT_NEAR(MakeObjective(ObjectiveKind::kWeightedSum, groups).value(x), 18e-3, 1e-15);
  EXPECT_NEAR(MakeObjective(ObjectiveKind::kGeometricMean, groups).value(x),
              std::pow(9 * 4 * std::pow(1.0, 5), 1.0 / 7) * 1e-3, 1e-15);
  for (const auto kind :
       {ObjectiveKind::kMax, ObjectiveKind::kWeightedSum, ObjectiveKind::kGeometricMean}) {
    CheckSlopes(MakeObjective(kind, groups), x);
  }
}

TEST(Objective, ATargetEndsAllSlopes) {
  for (const std::string& name : ObjectiveNames()) {
    const Objective objective = MakeObjective(*ParseObjective(name), {{}, {}}, 3e-3);
    const std::vector<double> above = {4e-3, 4e-3}, below = {1e-3, 1e-3};
    EXPECT_GT(objective.slopes(above)[0], 0) << name;
    EXPECT_EQ(objective.slopes(below)[0], 0) << name;
    EXPECT_EQ(objective.value(below), 3e-3) << name;
  }
  EXPECT_EQ(ParseObjective("sum"), std::nullopt);
}

}  // namespace
}  // namespace kiln::search
