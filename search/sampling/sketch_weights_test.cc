#include "search/sampling/sketch_weights.h"

#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::search {
namespace {

struct Found {
  double plain = 0, split = 0;
};

Found WeightsOf(const char* args, std::string_view target = "cuda -arch=sm_90") {
  Task task(dag::OpCase{"matmul", args, "", ir::kFloat16}.Build(), *target::ParseTarget(target), {},
            "[]");
  task.device.multiprocessors = 100;
  const Parameters parameters;
  const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  const std::vector<double> weights = SketchWeights(task, sketches);
  if (weights.empty()) return {1, 1};
  Found found;
  for (size_t i = 0; i < sketches.size(); ++i) {
    const bool is_split = std::ranges::any_of(sketches[i].steps, [](const auto& step) {
      return schedule::Is<schedule::RfactorStep>(*step);
    });
    (is_split ? found.split : found.plain) = weights[i];
  }
  return found;
}

TEST(SketchWeights, SumsAreSplitWhereResultsAreFew) {
  EXPECT_EQ(WeightsOf("512,512,4096").split, 1);
  EXPECT_EQ(WeightsOf("512,512,4096").plain, 1);
  // The product has 1,024 blocks of 64 x 64 for 100 multiprocessors.
  EXPECT_NEAR(WeightsOf("2048,2048,2048").split, 0.195, 0.001);
  EXPECT_EQ(WeightsOf("2048,2048,2048").plain, 1);
  EXPECT_EQ(WeightsOf("8192,8192,8192").split, 0.1);
}

TEST(SketchWeights, AQuarterIsOfAnOnlineSoftmax) {
  const Task task(dag::OpCase{"attention", "2,48,16", "", ir::kFloat16}.Build(),
                  *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
  const Parameters parameters;
  const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  const std::vector<double> weights = SketchWeights(task, sketches);
  ASSERT_EQ(weights.size(), sketches.size());
  double all = 0, online = 0;
  for (size_t i = 0; i < sketches.size(); ++i) {
    all += weights[i];
    if (sketches[i].state.online() != nullptr) online += weights[i];
  }
  EXPECT_GT(sketches.size(), 4u);
  EXPECT_NEAR(online / all, 0.5, 1e-9);
}

TEST(SketchWeights, OfACpuAllAreAlike) { EXPECT_EQ(WeightsOf("8192,8192,8192", "llvm").split, 1); }

}  // namespace
}  // namespace kiln::search
