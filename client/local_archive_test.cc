#include "client/local_archive.h"

#include <fcntl.h>
#include <sys/file.h>

#include "base/file/fd.h"
#include "base/file/file.h"
#include "base/status_testing.h"
#include "client/log_lines.h"
#include "store/sqlite_store.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

store::Record SomeRecord() {
  store::Record r;
  r.job_id = "job";
  r.task_index = 0;
  r.trial = 3;
  r.workload_key = "[\"k\", [1]]";
  r.dag = "dag";
  r.target = "llvm";
  r.steps = "[]";
  r.costs_s = {1e-3, 2e-3};
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
  EXPECT_OK(writer->AddRecord(SomeRecord()));
  ASSERT_OK_AND_ASSIGN(const auto jobs, archive->Jobs(std::nullopt));
  EXPECT_THAT(jobs, SizeIs(1));
  v1::BestRequest request;
  request.add_workload_keys(SomeTask().workload_key);
  ASSERT_OK_AND_ASSIGN(auto best, archive->Best(request));
  ASSERT_THAT(best, SizeIs(1));
  EXPECT_EQ(best[0].trial(), 3u);
  request.set_target("cuda");
  ASSERT_OK_AND_ASSIGN(best, archive->Best(request));
  EXPECT_THAT(best, SizeIs(0));
  EXPECT_THAT(archive->Job("none").status(), StatusIs(StatusCode::kNotFound, HasSubstr("none")));
  EXPECT_THAT(archive->GetRecord(99).status(), StatusIs(StatusCode::kNotFound, HasSubstr("99")));
}

// A command that needs names alone does not wait until the records of all jobs are counted.
TEST_F(LocalArchiveTest, JobsWithoutResultsHaveTheirTasksAndCountNoRecords) {
  ASSERT_OK_AND_ASSIGN(const auto writer, store::OpenSqliteStore(db_));
  const store::TaskRow task = SomeTask();
  ASSERT_OK(writer->AddJob(SomeJob(), {&task, 1}));
  EXPECT_OK(writer->AddRecord(SomeRecord()));
  ASSERT_OK_AND_ASSIGN(const auto archive, OpenLocalArchive(db_));
  ASSERT_OK_AND_ASSIGN(const auto jobs, archive->JobsWithoutResults());
  ASSERT_OK_AND_ASSIGN(const auto with_results, archive->Jobs(std::nullopt));
  ASSERT_THAT(jobs, SizeIs(1));
  ASSERT_THAT(jobs[0].tasks(), SizeIs(1));
  EXPECT_EQ(jobs[0].id(), with_results[0].id());
  EXPECT_EQ(jobs[0].tasks(0).workload_key(), task.workload_key);
  EXPECT_EQ(jobs[0].tasks(0).spec().SerializeAsString(),
            with_results[0].tasks(0).spec().SerializeAsString());
  EXPECT_EQ(jobs[0].trials_done(), 0u);
  EXPECT_EQ(with_results[0].trials_done(), 1u);
  EXPECT_EQ(jobs[0].tasks(0).best_record_id(), 0);
}

TEST_F(LocalArchiveTest, ShowsAJobWhoseSpecIsDamagedWithoutIt) {
  ASSERT_OK_AND_ASSIGN(const auto writer, store::OpenSqliteStore(db_));
  store::JobRow job = SomeJob();
  ASSERT_OK(writer->AddJob(job));
  job.id = "damaged";
  job.spec = "\xff";
  ASSERT_OK(writer->AddJob(job));
  ASSERT_OK_AND_ASSIGN(const auto archive, OpenLocalArchive(db_));
  ASSERT_OK_AND_ASSIGN(v1::JobStatus status, archive->Job("job"));
  EXPECT_EQ(status.spec().options().trials(), 10u);
  EXPECT_EQ(status.spec().name(), "name");
  ASSERT_OK_AND_ASSIGN(status, archive->Job("damaged"));
  EXPECT_FALSE(status.spec().has_options());
  EXPECT_EQ(status.spec().name(), "name");
}

TEST_F(LocalArchiveTest, ImportRefusesStepsThatThereAreNot) {
  const auto line = [](std::string_view steps) {
    return fmt::format(
        R"({{"i": [["[\"k\"]", "llvm"], [[], {}]], "r": [[1], 0, 1, 1], "v": "v0.6"}})"
        "\n",
        steps);
  };
  ASSERT_OK_AND_ASSIGN(const auto archive, OpenLocalArchive(db_, /*write=*/true));
  const std::string log = db_ + ".log";
  ASSERT_OK(WriteFile(log, line(R"([["SP", 2, 0, 8, [4], 1]])") + line(R"([["XX", 2, 0]])") +
                               line(R"([["SP", 2, 0, 8, [null], 1]])")));
  ASSERT_OK_AND_ASSIGN(LogLines lines, LogLines::Open(log));
  ASSERT_OK_AND_ASSIGN(const auto reply, archive->Import(lines));
  EXPECT_EQ(reply.imported(), 1u);
  ASSERT_EQ(reply.errors_size(), 2);
  EXPECT_THAT(reply.errors(0), HasSubstr("line 2: its steps: step #0: unknown step tag \"XX\""));
  EXPECT_THAT(reply.errors(1),
              HasSubstr("line 3: its steps: step #0: column 19: expected lengths as an integer"));
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
