// Tests that every sequence of up to three legal steps on tiny workloads computes what the DAG
// says.
#include <gtest/gtest.h>

#include <cstdlib>
#include <unordered_set>

#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/random_schedule_testing.h"
#include "compiler/schedule/step.h"
#include "tests/schedules/check_program.h"

namespace kiln {
namespace {

class Exhaustive {
 public:
  Exhaustive(const Workload& workload, int depth, schedule::EnumerateOptions options)
      : workload_(workload), depth_(depth), options_(std::move(options)) {}

  void Run() { Visit(schedule::State(workload_.dag), 0); }

  int sequences() const { return sequences_; }
  size_t programs() const { return programs_.size(); }

 private:
  void Visit(const schedule::State& state, int depth) {
    ++sequences_;
    CheckOnce(state);
    if (depth == depth_ || testing::Test::HasFailure()) return;
    for (const schedule::StepPtr& step : schedule::EnumerateSteps(state, options_)) {
      schedule::State next = state;
      const Status status = next.Apply(step);
      ASSERT_TRUE(status.ok()) << status;
      Visit(next, depth + 1);
      if (testing::Test::HasFailure()) return;
    }
  }

  // Runs each program once, because different sequences often give the same program.
  void CheckOnce(const schedule::State& state) {
    StatusOr<ir::Program> program = lower::Lower(state, {});
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << schedule::PrintSteps(state.steps());
    ASSERT_TRUE(ir::Verify(*program).ok()) << ir::Verify(*program);
    if (!programs_.insert(ir::ProgramText(*program)).second) return;
    const Status status = CheckByInterpreter(workload_, state);
    ASSERT_TRUE(status.ok()) << status;
  }

  const Workload& workload_;
  const int depth_;
  const schedule::EnumerateOptions options_;
  std::unordered_set<std::string> programs_;
  int sequences_ = 0;
};

void CheckAll(std::string name, dag::DagPtr dag, schedule::EnumerateOptions options) {
  const Workload workload = MakeWorkload(std::move(name), std::move(dag), 1);
  Exhaustive exhaustive(workload, 3, std::move(options));
  exhaustive.Run();
  std::printf("%s: %d sequences, %zu different programs\n", workload.name.c_str(),
              exhaustive.sequences(), exhaustive.programs());
  EXPECT_GT(exhaustive.sequences(), 1000);
}

// There is one split length, which does not divide most extents, and one direction, because both
// directions would double every level.
const schedule::EnumerateOptions kOptions = {.lengths = {{3}}, .outer_to_inner = false};

TEST(Exhaustive, Matmul) { CheckAll("matmul 4x6x5", schedule::MatmulRelu(4, 6, 5), kOptions); }
TEST(Exhaustive, Conv) {
  CheckAll(
      "conv 1x3x5x5",
      schedule::Conv2d(
          {.size = 5, .in_channels = 3, .out_channels = 2, .kernel = 3, .stride = 1, .padding = 1},
          false),
      kOptions);
}
TEST(Exhaustive, Softmax) { CheckAll("softmax 3x7", schedule::Softmax(3, 7), kOptions); }
TEST(Exhaustive, TwoSums) { CheckAll("two sums 3x7", schedule::TwoSums(3, 7), kOptions); }
TEST(Exhaustive, Pool) { CheckAll("average pool 4x4x1", schedule::AvgPool(4, 1), kOptions); }

}  // namespace
}  // namespace kiln
