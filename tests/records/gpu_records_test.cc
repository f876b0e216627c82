// The 24 recorded GPU schedules of a ResNet-18, lowered and run: by the interpreter, which executes blocks and threads in
// lockstep and checks every access, race and barrier, against the oracle.
//
// Whole layers are millions of operations; KILN_RECORDS (default 4,5,16: the small ones) names the lines to run. All of
// them are lowered and verified.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "tests/schedules/check_program.h"

namespace kiln {
namespace {

struct Layer {
  const char *op, *arguments, *epilogue;
};

// In the order of the lines of the file.
constexpr Layer kLayers[] = {
    {"conv2d_winograd_nhwc", "1,14,14,256,256", "bias,relu"},
    {"conv2d_nhwc", "1,56,56,64,64,1,1,1,0", ""},
    {"conv2d_nhwc", "1,56,56,128,64,3,3,2,1", "bias,relu"},
    {"dense", "1,1000,512", "bias"},
    {"global_avg_pool2d_nhwc", "1,7,7,512", ""},
    {"conv2d_winograd_nhwc", "1,7,7,512,512", "residual"},
    {"conv2d_nhwc", "1,14,14,512,256,1,1,2,0", ""},
    {"conv2d_winograd_nhwc", "1,28,28,128,128", "residual"},
    {"conv2d_winograd_nhwc", "1,7,7,512,512", "bias,relu"},
    {"conv2d_winograd_nhwc", "1,28,28,128,128", "residual,bias,relu"},
    {"conv2d_nhwc", "1,224,224,64,3,7,7,2,3", "bias,relu"},
    {"conv2d_nhwc", "1,56,56,128,64,1,1,2,0", ""},
    {"max_pool2d_nhwc", "1,112,112,64,3,3,2,1", "bias,relu"},
    {"conv2d_winograd_nhwc", "1,28,28,128,128", "bias,relu"},
    {"conv2d_nhwc", "1,14,14,512,256,3,3,2,1", "bias,relu"},
    {"softmax", "1,1000", ""},
    {"conv2d_winograd_nhwc", "1,14,14,256,256", "residual,bias,relu"},
    {"conv2d_winograd_nhwc", "1,56,56,64,64", "residual"},
    {"conv2d_nhwc", "1,28,28,256,128,1,1,2,0", ""},
    {"conv2d_winograd_nhwc", "1,14,14,256,256", "residual"},
    {"conv2d_nhwc", "1,28,28,256,128,3,3,2,1", "bias,relu"},
    {"conv2d_winograd_nhwc", "1,56,56,64,64", "residual,bias,relu"},
    {"conv2d_winograd_nhwc", "1,56,56,64,64", "bias,relu"},
    {"conv2d_winograd_nhwc", "1,7,7,512,512", "residual,scale,bias,relu"},
};

std::vector<std::string> RecordedSteps() {
  std::ifstream file("compiler/schedule/testdata/resnet18_cuda_steps.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

schedule::State ReplayLine(int line) {
  const Layer& layer = kLayers[line - 1];
  const auto dag = dag::BuildOp(layer.op, layer.arguments, {.epilogue = dag::SplitEpilogue(layer.epilogue)});
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  const auto steps = schedule::ParseSteps(RecordedSteps()[line - 1]);
  KILN_CHECK(steps.ok(), "{}", Message(steps.status()));
  auto state = schedule::Replay(*dag, *steps);
  KILN_CHECK(state.ok(), "{}", Message(state.status()));
  return *std::move(state);
}

TEST(GpuRecords, AllLowerAndVerify) {
  for (int line = 1; line <= 24; ++line) {
    SCOPED_TRACE(line);
    const schedule::State state = ReplayLine(line);
    ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
    const Status status = ir::Verify(program);
    EXPECT_TRUE(status.ok()) << status << "\n" << ir::ProgramText(program);
    if (std::getenv("KILN_PRINT") != nullptr) std::printf("%s\n", ir::ProgramText(program).c_str());
  }
}

std::set<int> LinesToRun() {
  const char* text = std::getenv("KILN_RECORDS");
  std::stringstream lines(text == nullptr ? "4,5,16" : text);
  std::set<int> result;
  for (std::string line; std::getline(lines, line, ',');) result.insert(std::atoi(line.c_str()));
  return result;
}

TEST(GpuRecords, ComputeWhatTheOracleComputes) {
  for (int line : LinesToRun()) {
    SCOPED_TRACE(line);
    const schedule::State state = ReplayLine(line);
    const Workload workload = MakeWorkload(kLayers[line - 1].op, state.initial_dag(), 1);
    const Status status = CheckByInterpreter(workload, state, /*gpu=*/true);
    EXPECT_TRUE(status.ok()) << status;
  }
}

}  // namespace
}  // namespace kiln
