#include "client/compile/task_programs.h"

#include "base/status_testing.h"
#include "base/thread_pool.h"
#include "client/compile/small_archive_testing.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/packed_inputs.h"
#include "device/calibration.h"
#include "search/choice/heuristic_choice.h"

namespace kiln::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

graph::NetworkTask Matmul(const std::string& extents) {
  return graph::MakeTask(*dag::BuildOp("matmul", extents, {}), "matmul " + extents);
}

const target::Target kZen4 = *target::ParseTarget("llvm -mcpu=znver4");

// Returns the same product with packed weights.
graph::NetworkTask PackedMatmul(const std::string& extents) {
  return graph::MakeTask(dag::PackInputs(Matmul(extents).dag, [](int) { return true; }),
                         "packed matmul " + extents);
}

// Splits a product's rows into tiles of 4.
constexpr char kTiled[] = "[[\"SP\", 2, 0, 16, [4], 1]]";

// Returns the product's schedule if nothing is measured.
std::string HeuristicOf(const std::string& extents) {
  const graph::NetworkTask product = Matmul(extents);
  const search::Task task(product.dag, kZen4, target::DefaultHardware(kZen4, AvailableCpus()),
                          product.workload_key);
  return search::ChooseHeuristic(task, device::CalibrationOf(task.device).row, 1)->steps;
}

TEST(CompileTasksTest, ComputesWhatTheFasterRecordIsOf) {
  SmallArchive archive;
  archive.Add(Matmul("16,16,16"), "llvm -mcpu=znver4", 1e-6, "", kTiled);
  archive.Add(PackedMatmul("16,16,16"), "llvm -mcpu=znver4", 2e-6, "", kTiled);
  archive.Add(Matmul("8,16,16"), "llvm -mcpu=haswell", 1e-6, "", HeuristicOf("8,16,16"));
  const std::vector<graph::NetworkTask> tasks = {PackedMatmul("16,16,16"), PackedMatmul("8,16,16")};
  ASSERT_OK_AND_ASSIGN(const auto programs, CompileTasks(tasks, {.target = kZen4}, &archive));
  EXPECT_THAT(dag::PackedInputs(*programs[0].dag), IsEmpty());
  EXPECT_EQ(programs[0].choice.record, "1");
  EXPECT_THAT(programs[0].choice.reused_from, IsEmpty());
  EXPECT_EQ(programs[1].dag, tasks[1].dag) << "steps of a plain one are reused for the packed one";
  EXPECT_EQ(programs[1].choice.record, "3");
  EXPECT_THAT(programs[1].choice.reused_from, HasSubstr("matmul 8,16,16 for llvm -mcpu=haswell"));
}

TEST(CompileTasksTest, AScheduleThatSomebodyHasSetComesBeforeRecords) {
  SmallArchive archive;
  archive.Add(Matmul("16,16,16"), "llvm -mcpu=znver4", 1e-6);
  archive.Set(Matmul("16,16,16"), "llvm -mcpu=znver4", "[[\"SP\", 2, 0, 16, [4], 1]]");
  const std::vector<graph::NetworkTask> tasks = {Matmul("16,16,16")};
  ASSERT_OK_AND_ASSIGN(const auto programs,
                       CompileTasks(tasks, {.target = kZen4, .strict = true}, &archive));
  EXPECT_EQ(programs[0].choice.source, search::ChoiceSource::kSet);
  EXPECT_EQ(programs[0].choice.record, "");
  EXPECT_THAT(programs[0].choice.steps, HasSubstr("[4]"));
}

TEST(CompileTasksTest, ReusesARecordWhereThereIsNoOwn) {
  SmallArchive archive;
  archive.Add(Matmul("32,64,64"), "llvm -mcpu=haswell", 1e-5, "a Haswell", HeuristicOf("64,64,64"));
  archive.Add(Matmul("16,16,16"), "llvm -mcpu=znver4", 1e-6, "a Zen 4", kTiled);
  const std::vector<graph::NetworkTask> tasks = {Matmul("64,64,64"), Matmul("16,16,16"),
                                                 Matmul("7,7,7")};
  ProgramOptions options{.target = kZen4};
  ASSERT_OK_AND_ASSIGN(const auto programs, CompileTasks(tasks, options, &archive));
  ASSERT_EQ(programs.size(), 3u);
  EXPECT_EQ(programs[0].choice.record, "1");
  EXPECT_THAT(programs[0].choice.reused_from, HasSubstr("matmul 32,64,64"));
  EXPECT_EQ(programs[0].compiled.args[0].shape, (std::vector<int64_t>{64, 64}));
  EXPECT_EQ(programs[1].choice.record, "2");
  EXPECT_THAT(programs[1].choice.reused_from, IsEmpty());
  EXPECT_EQ(programs[2].choice.record, "");
  EXPECT_EQ(DeviceOf(programs), "a Zen 4");
  options.strict = true;
  EXPECT_THAT(CompileTasks(tasks, options, &archive),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("2 of 3 tasks never tuned")));
}

// The record's device has more than the target's minimum, so another schedule would be chosen for
// the device.
TEST(CompileTasksTest, ARecordOfOneKernelChangesNoOtherOnAGpu) {
  if (!codegen::FindNvrtc().ok()) GTEST_SKIP() << "no NVRTC here";
  const target::Target cuda = *target::ParseTarget("cuda -arch=sm_90");
  const graph::NetworkTask measured = Matmul("16,16,16");
  const std::vector<graph::NetworkTask> tasks = {measured, Matmul("64,512,1024"),
                                                 Matmul("512,1000,64")};
  SmallArchive empty, one;
  one.Add(measured, "cuda -arch=sm_90", 1e-6, "NVIDIA H200", "[]",
          {-1, 16, 64, 232448, 2147483647, 1024, 8, 32});
  ASSERT_OK_AND_ASSIGN(const auto without, CompileTasks(tasks, {.target = cuda}, &empty));
  ASSERT_OK_AND_ASSIGN(const auto with, CompileTasks(tasks, {.target = cuda}, &one));
  for (size_t i = 1; i < tasks.size(); ++i) {
    EXPECT_EQ(with[i].choice.steps, without[i].choice.steps) << tasks[i].description;
    EXPECT_EQ(with[i].compiled.binary, without[i].compiled.binary);
  }
}

// The archive has only the unscheduled loops, as an earlier version left it after a job of one
// trial.
TEST(CompileTasksTest, TheUnscheduledLoopsAloneGiveWayToTheHeuristicSchedule) {
  SmallArchive archive;
  archive.Add(Matmul("256,256,256"), "llvm -mcpu=znver4", 0.1);
  const std::vector<graph::NetworkTask> tasks = {Matmul("256,256,256")};
  ASSERT_OK_AND_ASSIGN(const auto programs, CompileTasks(tasks, {.target = kZen4}, &archive));
  EXPECT_EQ(programs[0].choice.source, search::ChoiceSource::kSample);
  EXPECT_EQ(programs[0].choice.steps, HeuristicOf("256,256,256"));
}

}  // namespace
}  // namespace kiln::client
