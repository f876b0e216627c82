// Databases of every earlier schema (testdata/schemas/make.py) are opened, and all that was written
// into them is read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>

#include "base/hash/digest.h"
#include "base/process/subprocess.h"
#include "base/status_testing.h"
#include "store/database_check.h"
#include "store/folder_testing.h"
#include "store/record_testing.h"
#include "store/schema.h"
#include "store/sqlite_store.h"

namespace kiln::store {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kSchemas[] = "store/testdata/schemas";
constexpr char kDag[] = "A = placeholder(1, 56, 56, 64)\n";
constexpr char kOtherDag[] = "B = placeholder(8)\n";

// Names of the files without their ending: "01" to "16-first".
std::vector<std::string> FileNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kSchemas)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".db.gz")) names.push_back(name.substr(0, name.size() - 6));
  }
  std::ranges::sort(names);
  return names;
}

// Returns the trial that was written, with what its schema had no column for at its default.
Record Written(int version, const std::string& job, uint32_t trial) {
  Record r;
  r.job_id = job;
  r.trial = trial;
  r.workload_key = kTestKey;
  r.workload_id = Sha256Hex(kDag);
  r.dag = kDag;
  r.target = kTestTarget;
  r.hardware = {-1, 16, 64, 49152, 2147483647, 1024, 8, 32};
  r.steps = fmt::format(R"([["SP", 0, 0, 56, [{}], 1]])", trial);
  r.costs_s = {0.001 * (trial + 1), 0.003 * (trial + 1)};
  r.build_s = 0.5;
  r.run_s = 0.25;
  r.timestamp_s = 1700000000 + trial;
  r.device = "NVIDIA H200";
  r.builder = "builder-1";
  r.runner = "runner-1";
  r.max_error = 1e-06;
  r.flop_count = 1e9;
  if (version >= 2) r.origin = "mutation";
  if (version >= 2) r.score = -0.002;
  if (version >= 3) r.times = std::string("\x09\0t", 3);
  if (version >= 9) r.sampled_outputs = 8192;
  if (version >= 12) r.device_model = "compute_capability=90 multiprocessors=132 name=NVIDIA H200";
  if (version >= 19) r.device_state = std::string("\x08\0\x10", 3);
  // Graphs and warm caches were what Kiln did, unless the job asked for cold ones.
  if (job == "j") r.measured_as = "graph/warm/free";
  return r;
}

std::vector<Record> WrittenTrials(int version) {
  std::vector<Record> all;
  for (uint32_t trial = 0; trial < 5; ++trial) all.push_back(Written(version, "j", trial));
  if (version >= 2) {
    all[1].remeasured_costs_s = {0.0002, 0.0004, 0.0003};
    all[1].confidence_s = 1e-05;
    // Before, each value stood for itself.
    all[1].remeasurements = version >= 5 ? 6 : 3;
  }
  if (version >= 5) {
    all[1].remeasured_run_s = 0.75;
    all[1].remeasured_device = "GPU-1";
  }
  all[2].error = 5;
  all[2].costs_s = {};
  all[2].message = "outputs differ";
  all[3].stopped_early = true;
  if (version >= 6) all[3].unchecked = "constant";
  all[3].steps = R"([["PR", 1, 2, "register_buffering$8"]])";
  all[4].target = "llvm -mcpu=znver4";
  all[4].device = "EPYC";
  all[4].device_model = "";
  all[4].measured_as = "call/warm/free";
  return all;
}

Record WrittenImport(int version) {
  Record r = Written(version, "import", 0);
  r.workload_id = r.dag = r.device = r.builder = r.runner = r.origin = r.times = r.device_model =
      r.device_state = "";
  r.score = {};
  r.sampled_outputs = {};
  if (version >= 11) {
    r.target_host = "llvm";
    r.layout_rewrite_option = 2;
    r.input_names = {"x"};
  }
  return r;
}

std::vector<std::string> Describe(const std::vector<Record>& records) {
  std::vector<std::string> texts;
  for (const Record& r : records) {
    texts.push_back(fmt::format("{}|{}|{}|{}", Describe(r), r.target_host, r.layout_rewrite_option,
                                fmt::join(r.input_names, ",")));
  }
  return texts;
}

class MigrationTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    SubprocessOptions options;
    options.argv = {"gzip", "-dc", fmt::format("{}/{}.db.gz", kSchemas, GetParam())};
    options.output = SubprocessOptions::Stream::kPipe;
    ASSERT_OK_AND_ASSIGN(const RunResult unpacked,
                         RunToEnd(std::move(options), {}, absl::Seconds(20)));
    ASSERT_TRUE(unpacked.exit.ok());
    WriteFile(db_, unpacked.output);
  }

  const int version_ = std::stoi(GetParam());
  const TestFolder folder_;
  const std::string db_ = folder_.File("kiln.db");
};

TEST_P(MigrationTest, RecordsAndJobsAreWhatTheyWere) {
  ASSERT_OK_AND_ASSIGN(const auto store, OpenSqliteStore(db_));
  ASSERT_OK_AND_ASSIGN(const auto trials, store->RecordsOfJob("j", 0));
  EXPECT_EQ(Describe(trials), Describe(WrittenTrials(version_)));
  ASSERT_OK_AND_ASSIGN(const auto cold, store->RecordsOfJob("cold", 0));
  EXPECT_EQ(Describe(cold), Describe(std::vector{Written(version_, "cold", 0)}));
  ASSERT_OK_AND_ASSIGN(const auto imported, store->RecordsOfJob("import", 0));
  EXPECT_EQ(Describe(imported), Describe(std::vector{WrittenImport(version_)}));

  ASSERT_OK_AND_ASSIGN(const auto jobs, store->ListJobs(std::nullopt));
  ASSERT_THAT(jobs, SizeIs(3));
  const JobRow& job = jobs.back();
  EXPECT_EQ(job.id, "j");
  EXPECT_EQ(job.name, "name of j");
  EXPECT_EQ(job.user, "ada");
  EXPECT_EQ(job.priority, 3);
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.spec,
            "\x0a\x01"
            "a\x2a\x04\x22\x02\x08\x07");
  EXPECT_EQ(job.created_ms, 1000);
  EXPECT_EQ(job.started_ms, 2000);
  EXPECT_EQ(job.finished_ms, 3000);
  EXPECT_EQ(job.progress.ending, version_ >= 9 ? JobEnding::kTargetReached : JobEnding::kNone);
  EXPECT_EQ(job.progress.active_s, version_ >= 9 ? 1.5 : 0);
  EXPECT_EQ(job.fruitless_runs, version_ >= 10 ? 1 : 0);
  EXPECT_EQ(job.trials, version_ >= 17 ? 64u : 0u);

  ASSERT_OK_AND_ASSIGN(const auto tasks, store->TasksOfJob("j"));
  ASSERT_THAT(tasks, SizeIs(2));
  for (uint32_t i = 0; i < 2; ++i) {
    const TaskRow& task = tasks[i];
    EXPECT_EQ(task.dag, i == 0 ? kDag : kOtherDag);
    EXPECT_EQ(task.workload_id, Sha256Hex(task.dag));
    EXPECT_EQ(task.workload_key, kTestKey);
    EXPECT_EQ(task.target, kTestTarget);
    EXPECT_EQ(task.weight, 2.0);
    EXPECT_EQ(task.description, fmt::format("task {}", i));
    EXPECT_EQ(task.flop_count, 1e9);
    EXPECT_EQ(task.reference_cost_s, 0.125);
    EXPECT_EQ(task.alternative_of.has_value(), version_ >= 4 && i == 1);
    EXPECT_EQ(task.variant, version_ < 4 ? "" : i == 0 ? "direct" : "winograd");
    EXPECT_EQ(task.network, version_ < 4 ? "" : "net");
    EXPECT_EQ(task.known_job, "");
    EXPECT_EQ(task.known_trials, 0u);
  }
}

TEST_P(MigrationTest, EverythingElseIsWhatItWas) {
  ASSERT_OK_AND_ASSIGN(const auto store, OpenSqliteStore(db_));
  ASSERT_OK_AND_ASSIGN(const auto rounds, store->RoundsOfJob("j", 0));
  ASSERT_THAT(rounds, SizeIs(version_ >= 2 ? 1 : 0));
  for (const RoundRow& round : rounds) {
    EXPECT_EQ(round.task_index, 1u);
    EXPECT_EQ(round.elapsed_s, 4.5);
    EXPECT_EQ(round.trials, 5u);
    EXPECT_EQ(round.total_latency_s, 0.002);
    EXPECT_THAT(round.best_s, testing::ElementsAre(0.0003, std::nullopt));
    EXPECT_EQ(round.report, "a report");
  }
  ASSERT_OK_AND_ASSIGN(const SchedulerIdentity scheduler, store->NextIncarnation());
  if (version_ >= 2) {
    EXPECT_EQ(scheduler.id, "5ced");
  }
  ASSERT_OK_AND_ASSIGN(const auto known, store->ComputationsOfKey(kTestKey));
  EXPECT_THAT(known, SizeIs(2));
  ASSERT_OK_AND_ASSIGN(const auto bound, store->BoundTo(R"(["other", []])"));
  EXPECT_FALSE(bound.has_value()) << "no computation has this key yet";
  ASSERT_OK_AND_ASSIGN(const auto calibrations, store->Calibrations());
  ASSERT_THAT(calibrations, SizeIs(version_ >= 12 ? 1 : 0));
  if (version_ >= 12) {
    EXPECT_EQ(calibrations[0], (CalibrationRow{"NVIDIA H200", 90, "c=1", 9, "good"}));
  }
  std::vector<AutotvmRecord> of_autotvm;
  ASSERT_OK(store->ForEachAutotvmRecord({}, [&](const AutotvmRecord& record) {
    of_autotvm.push_back(record);
    return OkStatus();
  }));
  ASSERT_THAT(of_autotvm, SizeIs(version_ >= 14 ? 1 : 0));
  if (version_ >= 14) {
    EXPECT_EQ(of_autotvm[0].task, "dense.cuda");
    EXPECT_EQ(of_autotvm[0].config_index, 3);
    EXPECT_THAT(of_autotvm[0].costs_s, testing::ElementsAre(1e-05, 3e-05));
    EXPECT_EQ(of_autotvm[0].tvm_version, "0.8");
  }
  ASSERT_OK_AND_ASSIGN(const auto models, store->Models());
  ASSERT_THAT(models, SizeIs(version_ >= 15 ? 1 : 0));
  if (version_ >= 15) {
    ASSERT_OK_AND_ASSIGN(const ModelRow model, store->GetModel("m"));
    EXPECT_EQ(model.file, std::string("\0model", 6));
    EXPECT_EQ(model.created_s, 11);
  }
  ASSERT_OK_AND_ASSIGN(const auto pinned, store->PinnedSchedules(""));
  ASSERT_THAT(pinned, SizeIs(version_ >= 15 ? 1 : 0));
  if (version_ >= 15) {
    EXPECT_EQ(pinned[0], (PinnedSchedule{Sha256Hex(kDag), kTestTarget, "[]", 12}));
  }
}

TEST_P(MigrationTest, UsersAndTheAuditAreWhatTheyWere) {
  if (version_ < 17) GTEST_SKIP() << "schema 17 made their tables";
  ASSERT_OK_AND_ASSIGN(const auto store, OpenSqliteStore(db_));
  const UserRow ada{
      .limits = {3, 1000, 2, 4, 1 << 30},
      .use = {.name = "ada", .device_s = 12.5, .at_ms = 4000, .queue_use = 2.25},
  };
  ASSERT_OK_AND_ASSIGN(const auto users, store->Users());
  EXPECT_THAT(users, testing::ElementsAre(ada));
  const AuditRow entry{1, 5000, "ada", "Scheduler.CancelJob", "job cold", ""};
  ASSERT_OK_AND_ASSIGN(const auto entries, store->Audit("", 0, 10));
  EXPECT_THAT(entries, testing::ElementsAre(entry));
}

// Records from before the marks can be marked.
TEST_P(MigrationTest, RecordsCanBeMarked) {
  ASSERT_OK_AND_ASSIGN(const auto store, OpenSqliteStore(db_));
  ASSERT_OK_AND_ASSIGN(
      const int64_t marked,
      store->MarkRecords(
          {.runner = "runner-1", .from_s = 1700000003, .to_s = 1700000003, .reason = "slow"}));
  EXPECT_EQ(marked, 1);
  ASSERT_OK_AND_ASSIGN(const auto trials, store->RecordsOfJob("j", 3));
  EXPECT_EQ(trials[0].mark, "slow");
  EXPECT_EQ(trials[1].mark, "");
}

// The counts of imports are a table that is kept by hand.
TEST_P(MigrationTest, ImportsAreCountedOnce) {
  ASSERT_OK_AND_ASSIGN(const auto store, OpenSqliteStore(db_));
  ASSERT_OK_AND_ASSIGN(TrialCounts counts, store->CountTrials("import"));
  EXPECT_EQ(counts.total, 1);
  Record another = WrittenImport(version_);
  another.trial = 1;
  another.timestamp_s = 5;
  ASSERT_OK(store->AddRecord(another).status());
  ASSERT_OK_AND_ASSIGN(counts, store->CountTrials("import"));
  EXPECT_EQ(counts.total, 2);
  ASSERT_OK_AND_ASSIGN(const auto records, store->RecordsOfJob("import", 0));
  ASSERT_OK(store->DeleteRecords(std::vector{records[0].id}).status());
  ASSERT_OK_AND_ASSIGN(counts, store->CountTrials("import"));
  EXPECT_EQ(counts.total, 1);
}

// The tables and indexes are those of a new file, and nothing in the rows is wrong, before the
// migration and after it.
TEST_P(MigrationTest, ACheckFindsNothing) {
  const TextChecks checks = {
      .identity = [](std::string_view dag) -> StatusOr<std::string> { return Sha256Hex(dag); },
      .steps = [](std::string_view) { return OkStatus(); },
      .job_spec = [](std::string_view) { return OkStatus(); }};
  const auto faults = [&] {
    std::vector<std::string> texts;
    const auto report = CheckDatabaseFile(db_, checks);
    EXPECT_OK(report.status());
    if (!report.ok()) return texts;
    for (const Finding& finding : report->findings) {
      texts.push_back(finding.fault + ": " + finding.example);
    }
    return texts;
  };
  EXPECT_THAT(faults(), IsEmpty());
  ASSERT_OK(OpenSqliteStore(db_).status());
  EXPECT_THAT(faults(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, MigrationTest, testing::ValuesIn(FileNames()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return "Schema" + name;
});

TEST(Migration, EveryEarlierSchemaHasAFile) {
  std::set<int> versions;
  for (const std::string& name : FileNames()) versions.insert(std::stoi(name));
  for (int version = 1; version < static_cast<int>(Migrations().size()); ++version) {
    EXPECT_TRUE(versions.contains(version)) << "testdata/schemas/make.py makes it";
  }
}

TEST(Migration, ANewerFileIsRefusedByBothVersionsAndStaysAsItIs) {
  const TestFolder folder;
  const std::string db = folder.File("kiln.db");
  ASSERT_OK(OpenSqliteStore(db).status());
  const int known = static_cast<int>(Migrations().size());
  {
    ASSERT_OK_AND_ASSIGN(const auto newer, sqlite::Database::Open(db, kApplicationId, {}));
    ASSERT_OK(newer->Execute(fmt::format("PRAGMA user_version={}", known + 2).c_str()));
  }
  for (const auto mode :
       {sqlite::OpenOptions::Mode::kCreate, sqlite::OpenOptions::Mode::kReadOnly}) {
    EXPECT_THAT(OpenSqliteStore(db, {.mode = mode}),
                StatusIs(StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(fmt::format("schema {}", known + 2)),
                               HasSubstr(fmt::format("knows {}", known)),
                               HasSubstr("use that Kiln"), HasSubstr("kiln db restore"))));
  }
}

}  // namespace
}  // namespace kiln::store
