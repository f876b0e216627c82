#include "client/compile/schedule_choice.h"

#include "base/status_testing.h"
#include "client/compile/small_archive_testing.h"
#include "client/compile/task_programs.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/packed_inputs.h"

namespace kiln::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

graph::NetworkTask Matmul(const std::string& extents) {
  return graph::MakeTask(*dag::BuildOp("matmul", extents, {}), "matmul " + extents);
}

const target::Target kZen4 = *target::ParseTarget("llvm -mcpu=znver4");

TEST(RelatedRecordsTest, TheLeastCostTimesDistanceOfAnyTargetOfTheKind) {
  SmallArchive archive;
  archive.Add(Matmul("64,64,64"), "cuda -arch=sm_90", 1e-6);    // 1: of another kind
  archive.Add(Matmul("64,64,64"), "llvm -mcpu=haswell", 5e-5);  // 2
  archive.Add(Matmul("64,64,48"), "llvm -mcpu=znver4", 1e-6);   // 3: no whole multiple
  RelatedRecords of_another_target(archive);
  ASSERT_OK_AND_ASSIGN(ScheduleChoice choice, of_another_target.Find(Matmul("64,64,64"), kZen4));
  EXPECT_EQ(choice.record, "2");
  EXPECT_EQ(choice.reused_from, "matmul 64,64,64 for llvm -mcpu=haswell");
  EXPECT_EQ(choice.cost_s, 0) << "nobody knows what it costs here";

  // The keys of matrix products have their tensors' extents: M and K of A, N and K of B, M and N.
  archive.Add(Matmul("32,64,64"), "llvm -mcpu=znver4", 1e-5);  // 4: 4 times as far
  archive.Add(Matmul("16,64,64"), "llvm -mcpu=znver4", 9e-6);  // 5: 16 times
  RelatedRecords of_another_task(archive);
  ASSERT_OK_AND_ASSIGN(choice, of_another_task.Find(Matmul("64,64,64"), kZen4));
  EXPECT_EQ(choice.record, "4");
  ASSERT_OK_AND_ASSIGN(choice, of_another_task.Find(Matmul("8,64,64"), kZen4));
  EXPECT_THAT(choice.steps, IsEmpty()) << "smaller ones are at no distance";
}

// The same product, which takes its weights packed.
graph::NetworkTask PackedMatmul(const std::string& extents) {
  return graph::MakeTask(dag::PackInputs(Matmul(extents).dag, [](int) { return true; }),
                         "packed matmul " + extents);
}

TEST(FasterRecordTest, OfPackedAndPlainInputs) {
  const graph::NetworkTask packed = PackedMatmul("16,16,16"), plain = Matmul("16,16,16");
  SmallArchive archive;
  const auto faster = [&] { return *FasterRecordOf(packed.dag, kZen4, archive); };
  EXPECT_EQ(faster().dag, packed.dag);
  EXPECT_THAT(faster().schedule.steps, IsEmpty());
  archive.Add(plain, "llvm -mcpu=znver4", 2e-6);  // 1: of before
  EXPECT_EQ(graph::MakeTask(faster().dag, "").workload_id, plain.workload_id);
  EXPECT_EQ(faster().schedule.record, "1");
  archive.Add(packed, "llvm -mcpu=znver4", 3e-6);  // 2
  EXPECT_EQ(faster().schedule.record, "1");
  archive.Add(packed, "llvm -mcpu=znver4", 1e-6);  // 3
  EXPECT_EQ(faster().schedule.record, "3");
  EXPECT_EQ(faster().dag, packed.dag);
  ASSERT_OK_AND_ASSIGN(const ScheduledDag as_it_is, FasterRecordOf(plain.dag, kZen4, archive));
  EXPECT_EQ(as_it_is.schedule.record, "1") << "that of a computation whose inputs are not known";
}

TEST(CompileTasksTest, ComputesWhatTheFasterRecordIsOf) {
  SmallArchive archive;
  archive.Add(Matmul("16,16,16"), "llvm -mcpu=znver4", 1e-6);
  archive.Add(PackedMatmul("16,16,16"), "llvm -mcpu=znver4", 2e-6);
  archive.Add(Matmul("8,16,16"), "llvm -mcpu=haswell", 1e-6);
  const std::vector<graph::NetworkTask> tasks = {PackedMatmul("16,16,16"), PackedMatmul("8,16,16")};
  ASSERT_OK_AND_ASSIGN(const auto programs, CompileTasks(tasks, {.target = kZen4}, &archive));
  EXPECT_THAT(dag::PackedInputs(*programs[0].dag), IsEmpty());
  EXPECT_EQ(programs[0].choice.record, "1");
  EXPECT_THAT(programs[0].choice.reused_from, IsEmpty());
  EXPECT_EQ(programs[1].dag, tasks[1].dag) << "steps of a plain one are reused for the packed one";
  EXPECT_EQ(programs[1].choice.record, "3");
  EXPECT_THAT(programs[1].choice.reused_from, HasSubstr("matmul 8,16,16 for llvm -mcpu=haswell"));
}

TEST(CompileTasksTest, ReusesARecordWhereThereIsNoOwn) {
  SmallArchive archive;
  archive.Add(Matmul("32,64,64"), "llvm -mcpu=haswell", 1e-5, "a Haswell");
  archive.Add(Matmul("16,16,16"), "llvm -mcpu=znver4", 1e-6, "a Zen 4");
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
  EXPECT_THAT(
      CompileTasks(tasks, options, &archive),
      StatusIs(StatusCode::kFailedPrecondition, HasSubstr("2 of 3 tasks were never tuned")));
}

}  // namespace
}  // namespace kiln::client
