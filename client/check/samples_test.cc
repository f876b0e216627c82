// Tests that the self test has GPU programs of each kind. No GPU is needed.
#include "client/check/samples.h"

#include <algorithm>

#include "base/status_testing.h"
#include "client/check/selftest_programs.h"

namespace kiln::client {
namespace {

TEST(SelfTestProgramsTest, EachKindIsFoundForAGpu) {
  ASSERT_OK_AND_ASSIGN(const target::Target gpu, target::ParseTarget("cuda -arch=sm_90"));
  for (const SelfTestProgram& program : SelfTestPrograms(gpu)) {
    SCOPED_TRACE(program.kind);
    const target::Target target = TargetFor(program, gpu);
    ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, program.workload.Build());
    const auto steps = StepsOf(program, dag, target, 1);
    EXPECT_OK(steps);
    if (!steps.ok()) continue;
    ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, CudaOfSteps(dag, *steps));
    if (program.wanted.is_wanted) {
      EXPECT_TRUE(program.wanted.is_wanted(source)) << source.text;
    }
  }
}

// A target gets only programs for its own matrix units.
TEST(SelfTestProgramsTest, MatrixUnitsAreThoseOfTheTarget) {
  const auto count = [](std::string_view target, std::string_view kind) {
    const auto programs = SelfTestPrograms(*target::ParseTarget(target));
    return std::ranges::count_if(
        programs, [&](const SelfTestProgram& program) { return program.kind.starts_with(kind); });
  };
  EXPECT_GE(count("cuda -arch=sm_90", "wgmma f16"), 10);
  EXPECT_GE(count("cuda -arch=sm_80", "mma.sync s8"), 2);
  EXPECT_EQ(count("cuda -arch=sm_80", "wgmma"), 0);
  EXPECT_EQ(count("cuda -arch=sm_75", "mma"), 0);
  EXPECT_EQ(count("llvm", "mma"), 0);
}

TEST(SelfTestProgramsTest, TheSameSeedGivesTheSameSteps) {
  ASSERT_OK_AND_ASSIGN(const auto target, target::ParseTarget("llvm -mcpu=x86-64-v3"));
  const SelfTestProgram program = SelfTestPrograms(target)[0];
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, program.workload.Build());
  EXPECT_EQ(*StepsOf(program, dag, target, 5), *StepsOf(program, dag, target, 5));
  EXPECT_NE(*StepsOf(program, dag, target, 5), *StepsOf(program, dag, target, 6));
}

}  // namespace
}  // namespace kiln::client
