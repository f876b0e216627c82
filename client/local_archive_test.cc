#include "client/local_archive.h"

#include <fcntl.h>
#include <sys/file.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/status_testing.h"
#include "client/record_conversion.h"
#include "store/memory_store.h"
#include "store/sqlite_store.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

store::Record FullRecord() {
  store::Record r;
  r.id = 5;
  r.job_id = "job";
  r.task_index = 0;
  r.trial = 3;
  r.workload_key = "[\"k\", [1]]";
  r.dag = "dag";
  r.target = "llvm";
  r.hardware = {1, 2, 3, 4, 5, 6, 7, 8};
  r.steps = "[]";
  r.costs_s = {1e-3, 2e-3};
  r.message = "note";
  r.build_s = 0.5;
  r.run_s = 0.25;
  r.timestamp_s = 1'700'000'000;
  r.device = "cpu";
  r.builder = "b";
  r.runner = "r";
  r.stopped_early = true;
  r.max_error = 1e-6;
  r.flop_count = 1e9;
  v1::TrialTimes times;
  times.set_load_s(0.125);
  r.times = times.SerializeAsString();
  return r;
}

store::JobRow SomeJob() {
  store::JobRow job;
  job.id = "job";
  job.name = "name";
  job.user = "user";
  job.created_ms = 1'700'000'000'000;
  v1::JobSpec spec;
  spec.mutable_options()->set_trials(10);
  spec.mutable_options()->set_seed(7);
  job.spec = spec.SerializeAsString();
  return job;
}

store::TaskRow SomeTask() {
  store::TaskRow task;
  task.workload_key = "[\"k\", [1]]";
  task.dag = "dag";
  task.target = "llvm";
  task.description = "op";
  task.flop_count = 1e9;
  task.reference_cost_s = 1;
  return task;
}

TEST(RecordConversionTest, NothingIsLost) {
  const store::Record record = FullRecord();
  const v1::Record there = ToProto(record);
  EXPECT_EQ(ToProto(FromProto(there)).SerializeAsString(), there.SerializeAsString());
  const store::Record back = FromProto(there);
  EXPECT_EQ(back.hardware, record.hardware);
  EXPECT_EQ(back.costs_s, record.costs_s);
  EXPECT_EQ(back.message, record.message);
  EXPECT_EQ(back.timestamp_s, record.timestamp_s);
  EXPECT_EQ(back.stopped_early, record.stopped_early);
  EXPECT_EQ(back.max_error, record.max_error);
  EXPECT_EQ(back.times, record.times);
}

TEST(RecordConversionTest, TheStatusOfAStoredJob) {
  const auto store = store::NewMemoryStore();
  const store::TaskRow task = SomeTask();
  ASSERT_OK(store->AddJob(SomeJob(), {&task, 1}));
  ASSERT_OK(store->UpdateJobState("job", store::JobState::kRunning, "", 1'700'000'010'000));
  store::Record record = FullRecord();
  record.stopped_early = false;
  ASSERT_OK_AND_ASSIGN(const int64_t id, store->AddRecord(record));
  record.trial = 4;
  record.error = v1::WRONG_ANSWER_ERROR;
  record.costs_s.clear();
  ASSERT_OK(store->AddRecord(record));
  ASSERT_OK_AND_ASSIGN(const auto job, store->GetJob("job"));
  ASSERT_OK_AND_ASSIGN(const v1::JobStatus status,
                       JobStatusFromStore(*store, job, 1'700'000'025'000));
  EXPECT_EQ(status.state(), v1::RUNNING);
  EXPECT_EQ(status.trials_done(), 2u);
  EXPECT_EQ(status.error_counts().at(v1::WRONG_ANSWER_ERROR), 1u);
  EXPECT_EQ(status.error_counts().size(), 1u);
  EXPECT_EQ(status.elapsed_s(), 15);
  EXPECT_EQ(status.spec().options().trials(), 10u);
  EXPECT_EQ(status.spec().name(), "name");
  ASSERT_EQ(status.tasks_size(), 1);
  EXPECT_DOUBLE_EQ(status.tasks(0).best_cost_s(), 1.5e-3);
  EXPECT_EQ(status.tasks(0).best_record_id(), id);
  EXPECT_EQ(status.tasks(0).trials(), 2u);
}

class LocalArchiveTest : public testing::Test {
 protected:
  TempDir folder_ = *TempDir::Make("local-archive-test");
  const std::string db_ = folder_.Join("kiln.db");
};

TEST_F(LocalArchiveTest, AFileThatIsNotThereIsNotMade) {
  EXPECT_THAT(OpenLocalArchive(db_).status(),
              StatusIs(StatusCode::kNotFound, HasSubstr("no database at")));
  EXPECT_FALSE(FileExists(db_));
}

TEST_F(LocalArchiveTest, ReadsWhileASchedulerWrites) {
  ASSERT_OK_AND_ASSIGN(const auto writer, store::OpenSqliteStore(db_));
  const store::TaskRow task = SomeTask();
  ASSERT_OK(writer->AddJob(SomeJob(), {&task, 1}));
  ASSERT_OK_AND_ASSIGN(const auto archive, OpenLocalArchive(db_));
  EXPECT_OK(writer->AddRecord(FullRecord()));
  ASSERT_OK_AND_ASSIGN(const auto jobs, archive->Jobs(0));
  EXPECT_THAT(jobs, SizeIs(1));
  v1::BestRequest request;
  request.set_workload_key(SomeTask().workload_key);
  ASSERT_OK_AND_ASSIGN(auto best, archive->Best(request));
  ASSERT_THAT(best, SizeIs(1));
  EXPECT_EQ(best[0].trial(), 3u);
  request.set_target("cuda");
  ASSERT_OK_AND_ASSIGN(best, archive->Best(request));
  EXPECT_THAT(best, SizeIs(0));
  EXPECT_THAT(archive->Job("none").status(), StatusIs(StatusCode::kNotFound, HasSubstr("none")));
  EXPECT_THAT(archive->GetRecord(99).status(), StatusIs(StatusCode::kNotFound, HasSubstr("99")));
}

TEST_F(LocalArchiveTest, CancelsAJobUnlessASchedulerIsAtWork) {
  {
    ASSERT_OK_AND_ASSIGN(const auto writer, store::OpenSqliteStore(db_));
    ASSERT_OK(writer->AddJob(SomeJob()));
  }
  {
    const UniqueFd lock(open((db_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
    EXPECT_THAT(CancelInDatabase(db_, "job"),
                StatusIs(StatusCode::kFailedPrecondition, HasSubstr("a scheduler works on")));
  }
  EXPECT_OK(CancelInDatabase(db_, "job"));
  ASSERT_OK_AND_ASSIGN(const auto archive, OpenLocalArchive(db_));
  ASSERT_OK_AND_ASSIGN(const auto job, archive->Job("job"));
  EXPECT_EQ(job.state(), v1::CANCELLED);
}

}  // namespace
}  // namespace kiln::client
