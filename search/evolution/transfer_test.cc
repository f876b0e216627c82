#include "search/evolution/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/steps/steps.h"
#include "search/evolution/individual.h"
#include "search/evolution/rebuild.h"
#include "search/sampling/sample.h"

namespace kiln::search {
namespace {

using schedule::SplitStep;
using schedule::State;
using schedule::StepPtr;

constexpr int kDraws = 40;

Task MakeTask(dag::DagPtr dag, bool gpu) {
  target::HardwareParams hardware;
  hardware.num_cores = 4;
  return gpu ? Task(std::move(dag), *target::ParseTarget("cuda -arch=sm_90"), {}, "[]")
             : Task(std::move(dag), target::Target{}, hardware, "[]");
}

Task Conv(std::vector<std::string> epilogue, bool gpu) {
  auto dag = dag::BuildOp("conv2d_nhwc", "1,14,14,64,64,3,3,1,1", {.epilogue = epilogue});
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return MakeTask(*dag, gpu);
}

// Returns a product that `before` computes from p0, with `after` applied to the result.
Task Product(std::string_view before, std::string_view read, std::string_view after, bool gpu) {
  const auto parsed = dag::ParseDagText(fmt::format(R"(
input p0: float32[64, 128]
{}
input p1: float32[128, 96]
product[i: 64, j: 96] = sum(k: 128) {}[i, k]*p1[k, j]
{}
)",
                                                    before, read, after));
  KILN_CHECK(parsed.ok(), "{}", Message(parsed.status()));
  return MakeTask(parsed->dag, gpu);
}

// Returns the legal states among some draws of each sketch.
std::vector<State> Draws(const Task& task, const std::vector<Sketch>& sketches) {
  Rng rng(7);
  std::vector<State> states;
  for (const Sketch& sketch : sketches) {
    for (int i = 0; i < kDraws; ++i) {
      StatusOr<State> state = Sample(sketch, task, Parameters(), rng);
      if (state.ok()) states.push_back(*std::move(state));
    }
  }
  return states;
}

// Carries the steps over to the sketch that the result is then found to be made of.
StatusOr<std::vector<StepPtr>> ToAny(const std::vector<StepPtr>& steps,
                                     const std::vector<Sketch>& sketches) {
  for (size_t i = 0; i < sketches.size(); ++i) {
    auto transferred = TransferSteps(steps, sketches[i]);
    if (transferred.ok() && SketchOf(*transferred, sketches) == static_cast<int>(i))
      return transferred;
  }
  return NotFound("no sketch");
}

// Expects the transferred steps to apply, and to become the same again when transferred back.
void ExpectTransfers(const Task& a, const Task& b) {
  const Parameters parameters;
  const std::vector<Sketch> of_a = GenerateSketches({a, parameters});
  const std::vector<Sketch> of_b = GenerateSketches({b, parameters});
  int legal = 0;
  for (const State& state : Draws(a, of_a)) {
    const auto there = ToAny(state.steps(), of_b);
    ASSERT_TRUE(there.ok()) << schedule::PrintSteps(state.steps());
    Drop why = Drop::kIllegal;
    const StatusOr<State> rebuilt = Rebuild(b, *there, why);
    legal += rebuilt.ok();
    const auto back = ToAny(*there, of_a);
    ASSERT_OK(back.status());
    EXPECT_EQ(schedule::PrintSteps(*back), schedule::PrintSteps(state.steps()));
  }
  EXPECT_GT(legal, kDraws / 2);
}

TEST(TransferTest, ToOtherEpilogues) {
  for (const bool gpu : {false, true}) {
    SCOPED_TRACE(gpu);
    ExpectTransfers(Conv({"bias"}, gpu), Conv({"bias", "relu"}, gpu));
    ExpectTransfers(Conv({"bias", "relu"}, gpu), Conv({"bias"}, gpu));
  }
}

TEST(TransferTest, ToPrologues) {
  const Task plain = Product("", "p0", "y[i: 64, j: 96] = max(product[i, j], 0.0)", true);
  const Task shifted = Product("s[i: 64, k: 128] = p0[i, k] + 1.0", "s",
                               "y[i: 64, j: 96] = max(product[i, j], 0.0)", true);
  ExpectTransfers(plain, shifted);
}

// Steps move w in front of g, from another place in each of both.
TEST(TransferTest, OfStagesThatMove) {
  const auto products = [](std::string_view between, std::string_view value) {
    const auto parsed = dag::ParseDagText(fmt::format(R"(
input x: float16[64, 128]
input v: float16[128, 96]
g[i: 64, j: 96] = sum(k: 128) float32(x[i, k]) * float32(v[k, j])
{}
input w: float16[128, 96]
u[i: 64, j: 96] = sum(k: 128) float32(x[i, k]) * float32(w[k, j])
y[i: 64, j: 96] = {}
)",
                                                      between, value));
    KILN_CHECK(parsed.ok(), "{}", Message(parsed.status()));
    return MakeTask(parsed->dag, /*gpu=*/true);
  };
  ExpectTransfers(products("", "g[i, j] * u[i, j]"),
                  products("r[i: 64, j: 96] = max(g[i, j], 0.0)", "r[i, j] * u[i, j]"));
}

TEST(TransferTest, ToASecondOutput) {
  for (const bool gpu : {false, true}) {
    SCOPED_TRACE(gpu);
    const Task one =
        Product("input r: float32[64, 96]", "p0", "y[i: 64, j: 96] = product[i, j] + r[i, j]", gpu);
    const Task two = Product(
        "input r: float32[64, 96]\ninput b: float32[96]", "p0",
        "y[i: 64, j: 96] = (product[i, j] + r[i, j], max(product[i, j] + r[i, j] + b[j], 0.0))",
        gpu);
    ExpectTransfers(one, two);
    ExpectTransfers(two, one);
  }
}

TEST(TransferTest, HostileSteps) {
  const Task task = Conv({"bias"}, true);
  const std::vector<Sketch> sketches = GenerateSketches({task, Parameters()});
  for (const char* text : {"[]", "[[\"CI\", 2000000000]]", "[[\"SP\", 3, 0, 1, [1, 1, 1, 1], 1]]",
                           "[[\"FSP\", 3, 0, 77, 1]]", "[[\"CHR\", 2, \"shared\", [5, 6, 7]]]"}) {
    const auto steps = schedule::ParseSteps(text);
    ASSERT_OK(steps.status());
    for (const Sketch& sketch : sketches) {
      EXPECT_EQ(TransferSteps(*steps, sketch).status().code(), StatusCode::kNotFound);
    }
  }
}

TEST(SumsKeyTest, SaysWhatIsSummed) {
  EXPECT_EQ(SumsKey(*Conv({"bias"}, true).dag), SumsKey(*Conv({"bias", "relu"}, true).dag));
  const auto strided = dag::BuildOp("conv2d_nhwc", "1,14,14,64,64,3,3,2,1");
  ASSERT_OK(strided.status());
  EXPECT_NE(SumsKey(*Conv({}, true).dag), SumsKey(**strided));
  ASSERT_OK_AND_ASSIGN(const auto shift, dag::ParseDagText("input x: float32[4]\n"
                                                           "y[i: 4] = x[i] + 1.0\n"));
  EXPECT_EQ(SumsKey(*shift.dag), "");
}

}  // namespace
}  // namespace kiln::search
