// The programs of the self test exist for a GPU, each of its kind, without a GPU.
#include "client/check/samples.h"

#include "base/status_testing.h"
#include "client/check/selftest_programs.h"

namespace kiln::client {
namespace {

TEST(SelfTestProgramsTest, EachKindIsFoundForAGpu) {
  for (const SelfTestProgram& program : SelfTestPrograms()) {
    SCOPED_TRACE(program.kind);
    ASSERT_OK_AND_ASSIGN(target::Target target, target::ParseTarget("cuda -arch=sm_90"));
    if (program.shared_bytes > 0) {
      target.options["max_shared_memory_per_block"] = fmt::format("{}", program.shared_bytes);
    }
    ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, program.workload.Build());
    const auto steps = StepsOf(program, dag, target, 1);
    EXPECT_OK(steps);
    if (!steps.ok()) continue;
    ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, CudaOfSteps(dag, *steps));
    if (program.wanted != nullptr) {
      EXPECT_TRUE(program.wanted(source)) << source.text;
    }
  }
}

TEST(SelfTestProgramsTest, TheSameSeedGivesTheSameSteps) {
  const SelfTestProgram& program = SelfTestPrograms()[0];
  ASSERT_OK_AND_ASSIGN(const auto target, target::ParseTarget("llvm -mcpu=x86-64-v3"));
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, program.workload.Build());
  EXPECT_EQ(*StepsOf(program, dag, target, 5), *StepsOf(program, dag, target, 5));
  EXPECT_NE(*StepsOf(program, dag, target, 5), *StepsOf(program, dag, target, 6));
}

}  // namespace
}  // namespace kiln::client
