#include "search/sampling/register_tiles.h"

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/steps/steps.h"
#include "search/sampling/sample.h"
#include "search/space/factorization.h"

namespace kiln::search {
namespace {

constexpr CoreRegisters kAvx512 = {.lanes = 16, .registers = 32};

Task CpuTask(const std::string& op, const std::string& args) {
  const auto dag = dag::BuildOp(op, args);
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  target::HardwareParams hardware;
  hardware.num_cores = 4;
  hardware.vector_unit_bytes = 64;
  return Task(*dag, *target::ParseTarget("llvm"), hardware, "[]");
}

const dag::Operator& Last(const Task& task) { return task.dag->op(task.dag->size() - 1); }

TEST(Efficiency, RowsShareWhatOneVectorReads) {
  const Task task = CpuTask("matmul", "64,64,64");
  const double one = Efficiency(Last(task), {1, 16}, kAvx512);
  const double four = Efficiency(Last(task), {4, 32}, kAvx512);
  const double eight = Efficiency(Last(task), {8, 32}, kAvx512);
  EXPECT_LT(one, four);
  EXPECT_LT(four, eight);
  EXPECT_LE(eight, 1);
}

TEST(Efficiency, TilesBeyondTheRegistersAreWorse) {
  const Task task = CpuTask("matmul", "64,64,64");
  EXPECT_LT(Efficiency(Last(task), {16, 64}, kAvx512), Efficiency(Last(task), {8, 32}, kAvx512));
  const CoreRegisters avx2 = {.lanes = 8, .registers = 16};
  EXPECT_LT(Efficiency(Last(task), {8, 32}, avx2), Efficiency(Last(task), {4, 16}, avx2));
}

// A quarter of a vector does a quarter of the work in the same time.
TEST(Efficiency, PaddingCounts) {
  const Task task = CpuTask("matmul", "64,4,64");
  EXPECT_NEAR(Efficiency(Last(task), {8, 4}, kAvx512) * 4,
              Efficiency(Last(CpuTask("matmul", "64,16,64")), {8, 16}, kAvx512), 1e-9);
}

// The chosen tiles come from the choices, and no tile that was left out is better.
TEST(BestRegisterTiles, AreTheBestOfAll) {
  for (const char* args : {"64,64,64", "7,48,5", "49,1000,64", "1,16,512"}) {
    const Task task = CpuTask("matmul", args);
    const dag::Operator& op = Last(task);
    std::vector<std::vector<int64_t>> choices;
    for (const dag::Axis& axis : op.axes()) choices.push_back(Divisors(axis.extent));
    const auto best = BestRegisterTiles(op, choices, kAvx512, 3);
    ASSERT_FALSE(best.empty()) << args;
    for (const int64_t rows : choices[0]) {
      if (rows > kAvx512.registers) continue;
      for (const int64_t columns : choices[1]) {
        EXPECT_LE(Efficiency(op, {rows, columns}, kAvx512), Efficiency(op, best[0], kAvx512))
            << args << ": " << rows << " x " << columns;
      }
    }
  }
}

TEST(FillByRule, LeavesNoBlankAndEachStateLowers) {
  for (const auto& [op, args] : std::vector<std::pair<std::string, std::string>>{
           {"matmul", "64,48,96"},
           {"matmul", "127,255,63"},
           {"conv2d_nhwc", "1,14,14,32,32,3,3,1,1"},
           {"conv2d_nchw", "3,17,11,23,7,3,3,2,1"},
           {"depthwise_conv2d_nhwc", "1,9,9,16,3,3,1,1"},
           {"conv2d_winograd_nhwc", "1,14,14,16,16"},
           {"sum", "16,100,axis=1"}}) {
    const Task task = CpuTask(op, args);
    int filled = 0;
    for (const Sketch& sketch : GenerateSketches({task, Parameters()})) {
      for (const auto& steps : FillByRule(sketch, task, Parameters(), 12)) {
        for (const schedule::StepPtr& step : steps) {
          const auto* split = schedule::As<schedule::SplitStep>(*step);
          if (split == nullptr) continue;
          for (const int64_t length : split->lengths) EXPECT_GT(length, 0) << step->ToJson();
        }
        Rng rng(1);
        ASSERT_OK_AND_ASSIGN(const schedule::State state,
                             CompleteCpuByRule(task, steps, Parameters(), rng));
        SCOPED_TRACE(op + " " + args);
        EXPECT_OK(lower::Lower(state, {}).status());
        ++filled;
      }
    }
    EXPECT_GT(filled, 0) << op << " " << args;
  }
}

TEST(FillByRule, KeepsToTheNumberAsked) {
  const Task task = CpuTask("matmul", "256,256,256");
  int cut = 0;
  for (const Sketch& sketch : GenerateSketches({task, Parameters()})) {
    const auto all = FillByRule(sketch, task, Parameters(), 1'000);
    const auto few = FillByRule(sketch, task, Parameters(), 5);
    ASSERT_EQ(few.size(), std::min<size_t>(all.size(), 5));
    // The most promising ones are first, so they are the ones that stay.
    for (size_t i = 0; i < few.size(); ++i)
      EXPECT_EQ(schedule::PrintSteps(few[i]), schedule::PrintSteps(all[i])) << i;
    cut += all.size() > 5;
  }
  EXPECT_GT(cut, 0) << "no sketch has more";
}

// An activation has no tiles, so its sketches have no blanks.
TEST(FillByRule, HasNothingToFillWithoutBlanks) {
  const Task task = CpuTask("relu", "64,64");
  for (const Sketch& sketch : GenerateSketches({task, Parameters()}))
    EXPECT_TRUE(FillByRule(sketch, task, Parameters(), 5).empty());
}

}  // namespace
}  // namespace kiln::search
