// Tests the assembler's code for tiles of matrix units of four warps, as the search samples them:
// sums are rounded behind the wait for their products, and products do not wait for each other.
//
// KILN_SEED (default 1) and KILN_CANDIDATES (default 12, of each workload) choose which and how
// many. A failure prints workload, seed and steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/machine_code_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "tests/schedules/environment.h"
#include "tests/schedules/matrix_candidates.h"

namespace kiln::search {
namespace {
using testing::IsEmpty;

class MachineCodeOfUnits : public testing::Test {
 protected:
  void SetUp() override {
    const StatusOr<codegen::NvrtcInfo> nvrtc = codegen::FindNvrtc();
    if (!nvrtc.ok()) GTEST_SKIP() << Message(nvrtc.status());
  }
};

// Returns how many instructions round sums. All of them must be behind the wait.
int64_t RoundedLate(const schedule::State& state) {
  SCOPED_TRACE(schedule::PrintSteps(state.steps()));
  const auto rounded = [&]() -> StatusOr<int64_t> {
    KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    KILN_ASSIGN_OR_RETURN(const codegen::CudaSource source, codegen::GenerateCuda(program));
    KILN_ASSIGN_OR_RETURN(const codegen::Cubin cubin, codegen::CompileSource(source, "sm_90"));
    // The compiler's log says so if products wait for each other.
    EXPECT_EQ(cubin.log, "");
    KILN_ASSIGN_OR_RETURN(const codegen::MachineCode code, codegen::ReadMachineCode(cubin.binary));
    EXPECT_GT(code.products, 0);
    EXPECT_THAT(code.rounded_early, IsEmpty());
    return code.rounded;
  }();
  EXPECT_OK(rounded.status());
  return rounded.value_or(0);
}

// Each of these rounds sums and computes with the rounded sums, like layers of networks, whose
// operators all have results of 16 bits.
TEST_F(MachineCodeOfUnits, RoundsSumsBehindTheWaitForThem) {
  for (const dag::OpCase& c :
       {dag::OpCase{"dense", "128,2304,768", "cast,bias", ir::kFloat16},
        dag::OpCase{"dense", "128,768,1024", "cast,bias,relu", ir::kBFloat16},
        dag::OpCase{"conv2d_nhwc", "1,28,28,64,128,3,3,1,1", "cast,bias", ir::kFloat16}}) {
    SCOPED_TRACE(c.Name());
    int64_t rounded = 0;
    for (const schedule::State& state :
         MatrixStates(MatrixTask(c), ir::MatrixUnitScope::kWarpgroup, EnvironmentOr("KILN_SEED", 1),
                      EnvironmentOr("KILN_CANDIDATES", 12)))
      rounded += RoundedLate(state);
    EXPECT_GT(rounded, 0);
  }
}

// In this schedule the assembler rounds in front of the wait, unless a block of instructions ends
// behind the wait.
TEST_F(MachineCodeOfUnits, RoundsSumsOfARingBehindTheWaitForThem) {
  constexpr std::string_view kSteps = R"([
    ["CI", 3], ["SP", 2, 0, 128, [2, 32, 1, 1], 1],
    ["SP", 2, 5, 2304, [12, 4, 1, 2], 1], ["SP", 2, 10, 768, [1, 64], 1],
    ["RE", 2, [0, 5, 1, 6, 2, 7, 10, 11, 3, 8, 12, 4, 9]], ["FSP", 5, 0, 1, 3],
    ["FSP", 5, 4, 2, 3], ["RE", 5, [0, 4, 1, 5, 2, 6, 3, 7]], ["CA", 2, 5, 5],
    ["CHR", 1, "shared", [2]], ["CA", 2, 3, 6], ["CHR", 0, "shared", [3]],
    ["CA", 1, 4, 6], ["PR", 4, 0, "matrix_unit$2"], ["LA", 1, [0, 1]],
    ["SA", 1, 0, 1, 0], ["LA", 3, [0, 1]], ["SA", 3, 0, 1, 0], ["FU", 7, [0, 1]],
    ["AN", 7, 0, 5], ["FU", 7, [1, 2]], ["AN", 7, 1, 4], ["FU", 7, [2, 3]],
    ["AN", 7, 2, 6], ["FU", 3, [0, 1]], ["SP", 3, 0, 6144, [4], 1],
    ["AN", 3, 1, 2], ["FFSP", 3, 0, [2, 1], 1, 1], ["AN", 3, 1, 6],
    ["FU", 1, [0, 1]], ["SP", 1, 0, 4096, [4], 1], ["AN", 1, 1, 2],
    ["FFSP", 1, 0, [2, 1], 1, 1], ["AN", 1, 1, 6],
    ["PR", 4, 0, "auto_unroll_max_step$1024"], ["BF", 4, 3, 1],
    ["PR", 4, 0, "register_buffering$1"], ["PR", 7, 0, "min_blocks$0"],
    ["PR", 1, 0, "swizzle$0"], ["PR", 3, 0, "swizzle$0"],
    ["PR", 4, 0, "bulk_copies$1"], ["PR", 7, 0, "persistent_blocks$0"],
    ["PR", 7, 0, "stream_k$0"]])";
  constexpr std::string_view kDense = R"(
    input a: float16[128, 768]
    input b: float16[2304, 768]
    product[i: 128, j: 2304] = sum(k: 768) float32(a[i, k]) * float32(b[j, k])
    rounded[i: 128, j: 2304] = float16(product[i, j])
    input bias: float16[2304]
    biased[i: 128, j: 2304] = float16(float32(rounded[i, j]) + float32(bias[j]))
  )";
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(kDense));
  ASSERT_OK_AND_ASSIGN(const std::vector<schedule::StepPtr> steps, schedule::ParseSteps(kSteps));
  ASSERT_OK_AND_ASSIGN(const schedule::State state, schedule::Replay(dag, steps));
  EXPECT_GT(RoundedLate(state), 0);
}

// Behind the waits of an online softmax no block of instructions ends, since nothing rounds a sum
// as it is.
TEST_F(MachineCodeOfUnits, RoundsResultsOfAnOnlineSoftmaxBehindTheWaitForTheirSums) {
  for (const auto& [args, tile] : {std::pair{"6,2560,128", "16, 32, 4, 2, 2"},
                                   {"32,2048,128,causal=1", "16, 128, 8, 2, 2"},
                                   {"16,1024,64", "16, 64, 4, 1, 2"}}) {
    SCOPED_TRACE(args);
    ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag,
                         dag::BuildOp("attention", args, {.dtype = ir::kFloat16}));
    ASSERT_OK_AND_ASSIGN(
        const std::vector<schedule::StepPtr> steps,
        schedule::ParseSteps(fmt::format("[[\"OS\", {}, {}]]", dag->size() - 1, tile)));
    ASSERT_OK_AND_ASSIGN(const schedule::State state, schedule::Replay(dag, steps));
    RoundedLate(state);
  }
}

TEST(MachineCode, RefusesWhatIsNoCubin) {
  EXPECT_FALSE(codegen::ReadMachineCode("").ok());
  EXPECT_FALSE(codegen::ReadMachineCode(std::string(4096, 'x')).ok());
}

}  // namespace
}  // namespace kiln::search
