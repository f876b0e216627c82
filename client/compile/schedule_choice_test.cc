#include "client/compile/schedule_choice.h"

#include <map>

#include "base/status_testing.h"
#include "client/compile/task_programs.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/target/meaning.h"

namespace kiln::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

graph::NetworkTask Matmul(const std::string& extents) {
  return graph::MakeTask(*dag::BuildOp("matmul", extents, {}), "matmul " + extents);
}

// Records in memory: what RelatedRecords asks for.
class SmallArchive : public Archive {
 public:
  // Of the unscheduled loops.
  void Add(const graph::NetworkTask& task, const std::string& target, double cost_s,
           const std::string& device = "") {
    v1::TaskStatus& status = *jobs_.add_tasks();
    status.set_workload_id(task.workload_id);
    status.set_workload_key(task.workload_key);
    status.mutable_spec()->set_description(task.description);
    v1::Record record;
    record.set_id(static_cast<int64_t>(++records_));
    record.set_workload_id(task.workload_id);
    record.set_target(target);
    record.set_steps("[]");
    record.mutable_result()->add_costs_s(cost_s);
    record.mutable_result()->set_device(device);
    by_id_.emplace(task.workload_id, record);
  }

  std::string Name() const override { return "small"; }
  StatusOr<v1::JobStatus> Job(const std::string&) override { return jobs_; }
  StatusOr<std::vector<v1::JobStatus>> Jobs(std::optional<uint32_t>) override {
    return std::vector{jobs_};
  }
  StatusOr<std::vector<v1::Record>> Best(const v1::BestRequest& request) override {
    std::vector<v1::Record> found;
    const auto [begin, end] = by_id_.equal_range(request.workload_id());
    for (auto it = begin; it != end; ++it) {
      const bool fits = request.target().empty() ||
                        target::MeanSame(it->second.target(), {}, request.target(), {});
      if (fits) found.push_back(it->second);
    }
    return found;
  }
  StatusOr<v1::Record> GetRecord(int64_t) override { return NotFound("none"); }
  Status VisitRecords(const v1::ListRecordsRequest&,
                      const std::function<Status(const v1::Record&)>&) override {
    return OkStatus();
  }
  StatusOr<uint64_t> DeleteRecords(const std::vector<int64_t>&) override { return 0; }
  StatusOr<v1::BindKeyReply> BindKey(const v1::BindKeyRequest&) override {
    return v1::BindKeyReply();
  }
  StatusOr<v1::ImportRecordsReply> Import(LogLines&) override { return v1::ImportRecordsReply(); }

 private:
  v1::JobStatus jobs_;
  std::multimap<std::string, v1::Record> by_id_;
  int records_ = 0;
};

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
