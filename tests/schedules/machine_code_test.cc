// What the assembler makes of tiles of matrix units of four warps, as the search samples them: sums are
// rounded behind the wait for their products, and products don't wait for each other.
//
// KILN_SEED (default 1) and KILN_CANDIDATES (default 12, of each workload) choose which and how many; a
// failure prints workload, seed and steps.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/machine_code_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/text.h"
#include "compiler/ir/matrix_unit.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/matrix_product.h"
#include "search/space/matrix_tile.h"
#include "tests/schedules/environment.h"
#include "tests/schedules/matrix_candidates.h"

namespace kiln::search {
namespace {
using testing::IsEmpty;

// Each rounds sums, and computes with what is rounded: as layers of networks do, whose operators all have
// results of 16 bits.
std::string DenseText(std::string_view type, int64_t n, int64_t k, std::string_view last) {
  return fmt::format(
      "input a: {0}[128, {2}]\n"
      "input b: {0}[{1}, {2}]\n"
      "product[i: 128, j: {1}] = sum(k: {2}) float32(a[i, k]) * float32(b[j, k])\n"
      "rounded[i: 128, j: {1}] = {0}(product[i, j])\n"
      "input bias: {0}[{1}]\n"
      "biased[i: 128, j: {1}] = {0}(float32(rounded[i, j]) + float32(bias[j]))\n"
      "{3}",
      type, n, k, last);
}

std::string ConvolutionText() {
  return "input a: float16[30, 30, 64]\n"
         "input b: float16[3, 3, 64, 128]\n"
         "input bias: float16[128]\n"
         "product[y: 28, x: 28, o: 128] = sum(ky: 3, kx: 3, c: 64) "
         "float32(a[y + ky, x + kx, c]) * float32(b[ky, kx, c, o])\n"
         "rounded[y: 28, x: 28, o: 128] = float16(product[y, x, o])\n"
         "biased[y: 28, x: 28, o: 128] = float16(float32(rounded[y, x, o]) + float32(bias[o]))\n";
}

std::vector<schedule::State> OfFourWarps(const Task& task) {
  Parameters parameters;
  parameters.matrix_unit_prob = parameters.warpgroup_prob = 1;
  return MatrixCandidates(
      task, GenerateSketches({task, parameters}), parameters, EnvironmentOr("KILN_SEED", 1), 200,
      EnvironmentOr("KILN_CANDIDATES", 12), [](const schedule::State& state) {
        const std::optional<int> stage = MatrixStageOf(state);
        return stage && state.stage(*stage).hints[ir::Hint::kMatrixUnit] ==
                            static_cast<int32_t>(ir::MatrixUnitScope::kWarpgroup);
      });
}

class MachineCodeOfUnits : public testing::Test {
 protected:
  void SetUp() override {
    const StatusOr<codegen::NvrtcInfo> nvrtc = codegen::FindNvrtc();
    if (!nvrtc.ok()) GTEST_SKIP() << Message(nvrtc.status());
  }
};

// How many instructions round sums; all of them behind the wait.
int64_t RoundedLate(const schedule::State& state) {
  SCOPED_TRACE(schedule::PrintSteps(state.steps()));
  const auto rounded = [&]() -> StatusOr<int64_t> {
    KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    KILN_ASSIGN_OR_RETURN(const codegen::CudaSource source, codegen::GenerateCuda(program));
    KILN_ASSIGN_OR_RETURN(const codegen::Cubin cubin, codegen::CompileSource(source, "sm_90"));
    // It says so where products wait for each other.
    EXPECT_EQ(cubin.log, "");
    KILN_ASSIGN_OR_RETURN(const codegen::MachineCode code, codegen::ReadMachineCode(cubin.binary));
    EXPECT_GT(code.products, 0);
    EXPECT_THAT(code.rounded_early, IsEmpty());
    return code.rounded;
  }();
  EXPECT_OK(rounded.status());
  return rounded.value_or(0);
}

TEST_F(MachineCodeOfUnits, RoundsSumsBehindTheWaitForThem) {
  const std::string relu = "clipped[i: 128, j: 768] = max(biased[i, j], bfloat16(0.0))\n";
  for (const std::string& text : {DenseText("float16", 2304, 768, ""),
                                  DenseText("bfloat16", 768, 1024, relu), ConvolutionText()}) {
    SCOPED_TRACE(text);
    ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(text));
    int64_t rounded = 0;
    for (const schedule::State& state :
         OfFourWarps(Task(dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]")))
      rounded += RoundedLate(state);
    EXPECT_GT(rounded, 0);
  }
}

// Where a block of instructions did not end behind the wait, the assembler rounded in front of it.
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
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(DenseText("float16", 2304, 768, "")));
  ASSERT_OK_AND_ASSIGN(const std::vector<schedule::StepPtr> steps, schedule::ParseSteps(kSteps));
  ASSERT_OK_AND_ASSIGN(const schedule::State state, schedule::Replay(dag, steps));
  EXPECT_GT(RoundedLate(state), 0);
}

TEST(MachineCode, RefusesWhatIsNoCubin) {
  EXPECT_FALSE(codegen::ReadMachineCode("").ok());
  EXPECT_FALSE(codegen::ReadMachineCode(std::string(4096, 'x')).ok());
}

}  // namespace
}  // namespace kiln::search
