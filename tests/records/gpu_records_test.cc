// Lowers and runs the 24 recorded GPU schedules of a ResNet-18. The interpreter, which executes
// blocks and threads in lockstep and checks every access, race and barrier, is compared with the
// oracle.
//
// Whole layers are millions of operations, so KILN_RECORDS (default 4,5,16: the small ones) names
// the lines to run. All lines are lowered and verified.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <sstream>

#include "base/status_testing.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/recorded_layers_testing.h"
#include "tests/schedules/check_program.h"

namespace kiln {
namespace {

TEST(GpuRecords, AllLowerAndVerify) {
  for (const schedule::RecordedLayer& layer : schedule::RecordedLayers()) {
    SCOPED_TRACE(layer.line);
    const schedule::State state = layer.Replayed();
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
    const schedule::RecordedLayer& layer = schedule::RecordedLayers().at(line - 1);
    const schedule::State state = layer.Replayed();
    const Workload workload = MakeWorkload(layer.Name(), layer.dag, 1);
    const Status status = CheckByInterpreter(workload, state, /*gpu=*/true);
    EXPECT_TRUE(status.ok()) << status;
  }
}

}  // namespace
}  // namespace kiln
