// Tests the templates that Kiln ships. Every configuration of them is refused with a reason, or is
// a program that computes what the oracle computes: compiled by LLVM, lowered for a GPU in the
// interpreter, and as CUDA text.
//
// KILN_SEED (default 1) and KILN_CONFIGS (default 12, of each template and computation) choose
// which and how many. A failure prints template, computation, seed and index.
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "search/templates/shipped.h"
#include "tests/schedules/check_llvm.h"
#include "tests/schedules/environment.h"

namespace kiln::search {
namespace {

// Cases besides the small ones of the operator library, with extents that have many divisors.
constexpr dag::OpCase kMoreCases[] = {
    {"matmul", "12,18,24", "bias,relu"},
    {"dense", "16,24,32"},
    {"dense", "9,16,40", "bias"},
    {"batch_matmul", "3,8,12,16"},
    {"batch_matmul", "2,6,8,12", "relu"},
    {"conv2d_nchw", "1,8,8,12,6,3,3,1,1"},
    {"conv2d_nchw", "2,8,6,8,4,3,3,2,1", "bias,relu"},
    {"conv2d_nhwc", "1,8,8,12,6,3,3,1,1"},
    {"conv2d_nhwc", "2,6,8,8,4,1,1,1,0", "bias"},
    {"depthwise_conv2d_nchw", "2,8,12,6,3,3,1,1", "bias,relu"},
    {"depthwise_conv2d_nhwc", "1,8,6,12,3,3,2,1"},
};

std::vector<dag::OpCase> CasesOf(const ShippedTemplate& shipped) {
  std::vector<dag::OpCase> cases;
  const auto add = [&](const dag::OpCase& c) {
    const std::string_view op = c.op;
    if (op == shipped.op || (shipped.op == "dense" && op == "matmul")) cases.push_back(c);
  };
  for (const dag::OpCase& c : kMoreCases) add(c);
  for (const dag::OpCase& c : dag::SmallOpCases()) add(c);
  return cases;
}

// Numbers of configurations that were made, and that were refused with a reason.
struct Tried {
  int made = 0, refused = 0;
};

// Calls check(state) for random configurations.
template <typename Check>
void TryConfigs(const ShippedTemplate& shipped, const dag::OpCase& c, const dag::DagPtr& dag,
                Tried& tried, const Check& check) {
  const uint64_t seed = EnvironmentOr("KILN_SEED", 1);
  ASSERT_OK_AND_ASSIGN(const TemplatePtr made, TextTemplate::Parse(shipped.text));
  ASSERT_OK_AND_ASSIGN(const ConfigSpace space, made->Space(dag));
  Rng rng(seed);
  for (uint64_t i = 0; i < EnvironmentOr("KILN_CONFIGS", 12); ++i) {
    const int64_t index = *space.Random(rng);
    SCOPED_TRACE(fmt::format("{} of {}, seed {}, index {}: {}", shipped.name, c.Name(), seed, index,
                             PrintEntities(space.Get(index).entities)));
    const StatusOr<Instance> instance = made->Instantiate(dag, space.Get(index));
    if (!instance.ok()) {
      // If a step refuses, the template has a mistake. A `require` may refuse.
      EXPECT_THAT(instance.status(),
                  StatusIs(StatusCode::kFailedPrecondition,
                           testing::HasSubstr("the configuration does not meet require")));
      ++tried.refused;
      continue;
    }
    ++tried.made;
    check(instance->state.value());
    if (testing::Test::HasFailure()) return;
  }
}

class ShippedTemplatesTest : public testing::TestWithParam<size_t> {
 protected:
  const ShippedTemplate& shipped() const { return ShippedTemplates()[GetParam()]; }
};

TEST_P(ShippedTemplatesTest, PrintAndParseBack) {
  ASSERT_OK_AND_ASSIGN(const TemplateText text, ParseTemplate(shipped().text));
  EXPECT_EQ(text.name, shipped().name);
  EXPECT_EQ(text.for_gpu, shipped().for_gpu);
  ASSERT_OK_AND_ASSIGN(const TemplateText again, ParseTemplate(PrintTemplate(text)));
  EXPECT_EQ(again, text);
  EXPECT_EQ(PrintTemplate(again), PrintTemplate(text));
}

TEST_P(ShippedTemplatesTest, AreFoundForTheirComputations) {
  for (const dag::OpCase& c : CasesOf(shipped())) {
    ASSERT_OK_AND_ASSIGN(const TemplatePtr found, ShippedTemplateFor(c.Build(), shipped().for_gpu));
    EXPECT_EQ(found->name(), shipped().name) << c.Name();
  }
}

TEST_P(ShippedTemplatesTest, ComputeWhatTheOracleComputes) {
  const bool gpu = shipped().for_gpu;
  const target::HardwareParams hardware =
      target::FillHardware(*target::ParseTarget("cuda -arch=sm_90"), {});
  Tried tried;
  int too_large = 0;
  for (const dag::OpCase& c : CasesOf(shipped())) {
    const dag::DagPtr dag = c.Build();
    const Workload workload = MakeWorkload(c.Name(), dag, 3);
    TryConfigs(shipped(), c, dag, tried, [&](const schedule::State& state) {
      if (!gpu) {
        ASSERT_OK(CheckByLlvm(workload, state));
        return;
      }
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      const StatusOr<ir::Program> program = lower::Lower(state, {.gpu = true});
      ASSERT_OK(program);
      if (!codegen::CheckCudaProgram(*program, hardware).ok()) {
        // The refusal has a reason.
        ++too_large;
        return;
      }
      ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
      ASSERT_OK(codegen::GenerateCuda(*program));
    });
    if (HasFailure()) return;
  }
  fmt::print("{}: {} configurations, {} of them beyond a device, {} refused\n", shipped().name,
             tried.made, too_large, tried.refused);
  EXPECT_GT(tried.made - too_large, 3 * tried.refused / 2);
}

// g++ takes a second for each program.
TEST_P(ShippedTemplatesTest, EmulatedCudaComputesTheSame) {
  if (!shipped().for_gpu) return;
  Tried tried;
  int emulated = 0;
  const std::vector<dag::OpCase> cases = CasesOf(shipped());
  for (const dag::OpCase& c : std::span(cases).first(std::min<size_t>(2, cases.size()))) {
    TryConfigs(shipped(), c, c.Build(), tried, [&](const schedule::State& state) {
      if (emulated >= 4) return;
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      if (!codegen::CheckCudaProgram(program, target::HardwareParams()).ok()) return;
      ASSERT_OK(codegen::CompareEmulated(program, 5, 1e-4));
      ++emulated;
    });
  }
  EXPECT_GT(emulated, 0);
}

INSTANTIATE_TEST_SUITE_P(All, ShippedTemplatesTest,
                         testing::Range<size_t>(0, ShippedTemplates().size()),
                         [](const testing::TestParamInfo<size_t>& info) {
                           const ShippedTemplate& shipped = ShippedTemplates()[info.param];
                           return fmt::format("{}_{}", shipped.name,
                                              shipped.for_gpu ? "gpu" : "cpu");
                         });

// The layer of the tutorial.
TEST(TutorialTemplate, HasTheSpaceOfTheTutorial) {
  ASSERT_OK_AND_ASSIGN(const ShippedTemplate* shipped,
                       FindShippedTemplate("conv2d_nchw_direct", /*gpu=*/true));
  ASSERT_OK_AND_ASSIGN(const TemplatePtr made, TextTemplate::Parse(shipped->text));
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::BuildOp("conv2d_nchw", "1,7,7,512,512,3,3,1,1"));
  ASSERT_OK_AND_ASSIGN(const ConfigSpace space, made->Space(dag));
  EXPECT_EQ(space.range(), 10'454'400);
  std::vector<int64_t> sizes;
  for (const Knob& knob : space.knobs()) sizes.push_back(knob.size());
  EXPECT_EQ(sizes, (std::vector<int64_t>{220, 4, 4, 55, 3, 3, 3, 2}));
  EXPECT_THAT(space.Print(),
              testing::StartsWith(
                  "ConfigSpace (len=10454400, space_map=\n"
                  "   0 tile_f: Split(policy=factors, product=512, num_outputs=4) len=220\n"));
}

}  // namespace
}  // namespace kiln::search
