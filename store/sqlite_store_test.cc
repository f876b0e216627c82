// Tests of what only the SQLite store does: it outlives its process, and shares its file.
#include "store/sqlite_store.h"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "base/hash/digest.h"
#include "base/status_testing.h"
#include "store/folder_testing.h"
#include "store/record_testing.h"
#include "store/schema.h"

namespace kiln::store {
namespace {

using sqlite::Database;
using sqlite::OpenOptions;
using testing::HasSubstr;
using testing::Not;

class SqliteStoreTest : public testing::Test {
 protected:
  StatusOr<std::unique_ptr<Store>> Open(OpenOptions::Mode mode = OpenOptions::Mode::kCreate) {
    return OpenSqliteStore(path_, {.mode = mode, .busy_timeout_ms = 5000});
  }
  static Status AddJob(Store& store, const std::string& id) {
    JobRow job;
    job.id = id;
    return store.AddJob(job);
  }
  // Opens a second connection, to look at the file from outside.
  StatusOr<std::unique_ptr<Database>> Raw() { return Database::Open(path_, kApplicationId, {}); }

  TestFolder folder_;
  std::string path_ = folder_.File("kiln.db");
};

TEST_F(SqliteStoreTest, EverythingIsThereAfterReopening) {
  {
    ASSERT_OK_AND_ASSIGN(auto store, Open());
    ASSERT_OK(AddJob(*store, "j"));
    const TaskRow task = {.index = 0, .workload_key = kTestKey, .dag = "dag", .target = "t"};
    ASSERT_OK(store->AddTasks("j", {&task, 1}));
    ASSERT_OK(store->AddRecord(TestRecord("j", 7)));
  }
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  ASSERT_OK_AND_ASSIGN(const auto jobs, store->LoadUnfinishedJobs());
  ASSERT_EQ(jobs.size(), 1);
  ASSERT_OK_AND_ASSIGN(const auto tasks, store->TasksOfJob("j"));
  ASSERT_EQ(tasks.size(), 1);
  EXPECT_EQ(tasks[0].dag, "dag");
  ASSERT_OK_AND_ASSIGN(const auto records, store->RecordsOfJob("j", 0));
  ASSERT_EQ(records.size(), 1);
  EXPECT_EQ(Describe(records[0]), Describe(TestRecord("j", 7)));
  EXPECT_THAT(store->AddRecord(TestRecord("j", 7, 2)),
              StatusIs(StatusCode::kAlreadyExists, HasSubstr("7")));
}

TEST_F(SqliteStoreTest, ADagIsKeptOnce) {
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  ASSERT_OK(AddJob(*store, "j"));
  for (uint32_t trial = 0; trial < 10; ++trial) ASSERT_OK(store->AddRecord(TestRecord("j", trial)));
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  ASSERT_OK_AND_ASSIGN(const int64_t dags, raw->QueryInt("SELECT count(*) FROM dags"));
  EXPECT_EQ(dags, 1);
}

// The sums of a job that gets records are kept, and are read from the file by another store.
TEST_F(SqliteStoreTest, KeptSumsAreThoseOfTheFile) {
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  ASSERT_OK(AddJob(*store, "j"));
  const auto same = [&] {
    const TrialCounts kept = *store->CountTrials("j");
    const TrialCounts read = *(*Open())->CountTrials("j");
    EXPECT_EQ(kept.total, read.total);
    EXPECT_EQ(kept.by_task, read.by_task);
    EXPECT_EQ(kept.by_error, read.by_error);
    EXPECT_EQ(kept.next_trial, read.next_trial);
    EXPECT_EQ(kept.run_s, read.run_s);
    EXPECT_EQ(kept.remeasured_run_s, read.remeasured_run_s);
    EXPECT_EQ(kept.runners, read.runners);
    return kept.total;
  };
  Record other = TestRecord("j", 5);
  other.task_index = 2;
  other.runner = "runner-2";
  ASSERT_OK(store->AddRecords(std::vector<Record>{TestRecord("j", 0), FailedRecord("j", 1, 4)}));
  ASSERT_OK_AND_ASSIGN(const int64_t id, store->AddRecord(other));
  EXPECT_EQ(same(), 3);
  // The store has this record already.
  ASSERT_OK(store->AddRecord(other));
  EXPECT_EQ(same(), 3);
  // A batch that is refused counts for nothing.
  EXPECT_FALSE(
      store->AddRecords(std::vector<Record>{TestRecord("j", 6), TestRecord("j", 0, 2)}).ok());
  EXPECT_EQ(same(), 3);
  const Remeasurement again = {.id = id, .run_s = 0.5, .error = 5, .message = "element 3"};
  ASSERT_OK(store->SetRemeasurements({&again, 1}));
  EXPECT_EQ(same(), 3);
  ASSERT_OK(store->DeleteRecords({&id, 1}));
  EXPECT_EQ(same(), 2);
  ASSERT_OK(store->AddRecord(TestRecord("j", 7)));
  EXPECT_EQ(same(), 3);
}

// A list of jobs asks for the sums of jobs that have ended. They are read once.
TEST_F(SqliteStoreTest, SumsOfAJobThatHasEndedAreKept) {
  {
    ASSERT_OK_AND_ASSIGN(auto store, Open());
    ASSERT_OK(AddJob(*store, "j"));
    ASSERT_OK(store->AddRecords(std::vector<Record>{TestRecord("j", 0), FailedRecord("j", 1, 4)}));
    ASSERT_OK(store->UpdateJobState("j", JobState::kSucceeded, "", 1));
  }
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  EXPECT_EQ(store->CountTrials("j")->total, 2);
  // Somebody who deletes behind the store's back, which nobody may, shows that nothing is read.
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  ASSERT_OK(raw->Execute("DELETE FROM records WHERE trial = 1"));
  EXPECT_EQ(store->CountTrials("j")->total, 2);
  const int64_t first = store->RecordsOfJob("j", 0)->front().id;
  ASSERT_OK(store->DeleteRecords({&first, 1}));
  EXPECT_EQ(store->CountTrials("j")->total, 0);
}

TEST_F(SqliteStoreTest, CostsReadAsJsonInSql) {
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  ASSERT_OK(AddJob(*store, "j"));
  Record record = TestRecord("j", 0);
  record.costs_s = {1e-5, 3e-5};
  ASSERT_OK(store->AddRecord(record));
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  ASSERT_OK_AND_ASSIGN(
      const int64_t matches,
      raw->QueryInt("SELECT count(*) FROM records, json_each(costs_s) WHERE value IN (1e-5, 3e-5) "
                    "AND abs(mean_cost_s - 2e-5) < 1e-20 AND json_array_length(hardware) = 8"));
  EXPECT_EQ(matches, 2);
}

// The file has the first schema, with a record in it.
TEST_F(SqliteStoreTest, AnOlderFileIsBroughtUpToDate) {
  {
    ASSERT_OK_AND_ASSIGN(auto raw, Raw());
    ASSERT_OK(sqlite::Migrate(*raw, Migrations().first(1), false));
    ASSERT_OK(
        raw->Execute("INSERT INTO jobs VALUES (1, 'j', '', '', 0, 'succeeded', '', x'', 0, 0, 0)"));
    ASSERT_OK(
        raw->Execute("INSERT INTO tasks VALUES ('j', 0, 'key', NULL, 'llvm', 1, 'dense', 1, 2)"));
    ASSERT_OK(raw->Execute(
        "INSERT INTO records VALUES (1, 'j', 0, 7, 'key', NULL, 'llvm', '[0, 0, 0, 0, 0, 0, 0, 0]',"
        " '[]', '[0.25]', 0.25, 0, '', 1, 2, 3, 'cpu', 'b', 'r', 0, 0, 1e9)"));
  }
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  ASSERT_OK_AND_ASSIGN(const Record record, store->GetRecord(1));
  EXPECT_EQ(record.trial, 7u);
  EXPECT_EQ(Cost(record), 0.25);
  EXPECT_EQ(record.origin, "");
  EXPECT_FALSE(record.score.has_value());
  EXPECT_TRUE(record.remeasured_costs_s.empty());
  EXPECT_FALSE(record.confidence_s.has_value());
  EXPECT_EQ(record.remeasurements, 0u);
  EXPECT_EQ(record.remeasured_device, "");
  EXPECT_EQ(record.unchecked, "");
  const Remeasurement remeasured = {.id = 1, .costs_s = {0.26}, .confidence_s = 0.01};
  ASSERT_OK(store->SetRemeasurements({&remeasured, 1}));
  EXPECT_EQ(Cost(**store->BestOfJob("j", 0)), 0.26);
  EXPECT_EQ(store->GetRecord(1)->remeasurements, 1u) << "where the row does not say";
  EXPECT_EQ(store->RoundsOfJob("j", 0)->size(), 0u);
  ASSERT_OK_AND_ASSIGN(const auto tasks, store->TasksOfJob("j"));
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].description, "dense");
  EXPECT_EQ(tasks[0].alternative_of, std::nullopt);
  EXPECT_EQ(tasks[0].variant, "");
}

// The file has schema 12. Columns that were renamed later are found under their present names.
TEST_F(SqliteStoreTest, RenamedColumnsAndHintsKeepTheirValues) {
  {
    ASSERT_OK_AND_ASSIGN(auto raw, Raw());
    ASSERT_OK(sqlite::Migrate(*raw, Migrations().first(12), false));
    ASSERT_OK(raw->Execute(
        "INSERT INTO jobs (number, id, name, user, priority, state, message, spec, created_ms, "
        "started_ms, finished_ms) VALUES (1, 'j', '', '', 0, 'succeeded', '', x'', 0, 0, 0);"
        "INSERT INTO tasks (job_id, task_index, workload_key, target, weight, description, "
        "flop_count, reference_cost_s, form) VALUES ('j', 0, 'key', 'cuda', 1, 'conv', 1, 2, "
        "'winograd F(4,3)');"
        "INSERT INTO records (id, job_id, task_index, trial, workload_key, target, hardware, "
        "steps, "
        "costs_s, mean_cost_s, error, message, timestamp_s, device, builder, runner, "
        "stopped_early, "
        "final_costs_s, final_readings, final_run_s, final_device) VALUES (1, 'j', 0, 7, 'key', "
        "'cuda', '[0, 0, 0, 0, 0, 0, 0, 0]', '[[\"PR\",3,0,\"fragments$2\"]]', '[0.25]', 0.24, 0, "
        "'', "
        "3, 'gpu', 'b', 'r', 0, '[0.24]', 4, 0.5, 'gpu 0')"));
  }
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  ASSERT_OK_AND_ASSIGN(const Record record, store->GetRecord(1));
  EXPECT_EQ(record.steps, R"([["PR",3,0,"register_buffering$2"]])");
  EXPECT_EQ(record.remeasured_costs_s, std::vector<double>{0.24});
  EXPECT_EQ(record.remeasurements, 4u);
  EXPECT_EQ(record.remeasured_run_s, 0.5);
  EXPECT_EQ(record.remeasured_device, "gpu 0");
  ASSERT_OK_AND_ASSIGN(const auto tasks, store->TasksOfJob("j"));
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].variant, "winograd F(4,3)");
}

TEST_F(SqliteStoreTest, ASchemaVersionThatCannotBeIsRefused) {
  ASSERT_OK(Open());
  for (const char* version : {"-1", "-2147483648"}) {
    {
      ASSERT_OK_AND_ASSIGN(auto raw, Raw());
      ASSERT_OK(raw->Execute(fmt::format("PRAGMA user_version={}", version).c_str()));
    }
    EXPECT_THAT(Open(), StatusIs(StatusCode::kDataLoss,
                                 HasSubstr(fmt::format("says that its schema is {}", version))));
  }
}

TEST_F(SqliteStoreTest, AnOlderFileWithASpoiledRowIsBroughtUpToDate) {
  {
    ASSERT_OK_AND_ASSIGN(auto raw, Raw());
    ASSERT_OK(sqlite::Migrate(*raw, Migrations().first(5), false));
    ASSERT_OK(
        raw->Execute("PRAGMA ignore_check_constraints=ON;"
                     "INSERT INTO jobs VALUES (1, 'j', '', '', 0, 'napping', '', x'', 0, 0, 0)"));
  }
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  EXPECT_THAT(store->GetJob("j")->message, HasSubstr("job state 'napping' is unknown"));
}

TEST_F(SqliteStoreTest, AJobWhoseStateIsUnknownDoesNotHideTheOthers) {
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  ASSERT_OK(AddJob(*store, "good"));
  ASSERT_OK(AddJob(*store, "bad"));
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  ASSERT_OK(
      raw->Execute("PRAGMA ignore_check_constraints=ON;"
                   "UPDATE jobs SET state = 'napping' WHERE id = 'bad'"));
  ASSERT_OK_AND_ASSIGN(const auto jobs, store->ListJobs(std::nullopt));
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].state, JobState::kFailed);
  EXPECT_THAT(jobs[0].message, HasSubstr("job state 'napping' is unknown"));
  EXPECT_EQ(jobs[1].state, JobState::kQueued);
}

TEST_F(SqliteStoreTest, AnErrorKindThatThereIsNotIsDamage) {
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  ASSERT_OK(AddJob(*store, "j"));
  Record record;
  record.job_id = "j";
  record.target = "null";
  record.steps = "[]";
  record.costs_s = {1};
  ASSERT_OK(store->AddRecord(record));
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  for (const char* error : {"-2147483649", "9", "4294967296"}) {
    ASSERT_OK(raw->Execute(
        fmt::format("PRAGMA ignore_check_constraints=ON; UPDATE records SET error = {}", error)
            .c_str()));
    const auto refused = StatusIs(StatusCode::kDataLoss,
                                  HasSubstr(fmt::format("has the error kind {}, expected", error)));
    // This store keeps the sums of what it has written.
    ASSERT_OK_AND_ASSIGN(store, Open());
    EXPECT_THAT(store->CountTrials("j"), refused);
    EXPECT_THAT(store->RecordsOfJob("j", 0), refused);
  }
}

TEST_F(SqliteStoreTest, ANewerFileIsRefused) {
  ASSERT_OK(Open());
  {
    ASSERT_OK_AND_ASSIGN(auto raw, Raw());
    ASSERT_OK(raw->Execute("PRAGMA user_version=1000"));
  }
  EXPECT_THAT(
      Open(),
      StatusIs(StatusCode::kFailedPrecondition,
               HasSubstr(fmt::format("made by a newer Kiln (schema 1000, this one knows {})",
                                     Migrations().size()))));
}

// The file is of an older version: records of two computations that share a key, and a record of a
// log.
TEST_F(SqliteStoreTest, RecordsOfAnOlderFileAreOfTheComputationsOfTheirDags) {
  const std::string two = Sha256Hex("dag 2x2"), three = Sha256Hex("dag 3x3");
  {
    ASSERT_OK_AND_ASSIGN(auto raw, Raw());
    ASSERT_OK(sqlite::Migrate(*raw, Migrations().first(5), false));
    ASSERT_OK(raw->Execute(
        fmt::format("INSERT INTO dags VALUES (1, '{}', 'dag 2x2'), (2, '{}', 'dag 3x3');"
                    "INSERT INTO jobs VALUES (1, 'j', '', '', 0, 'succeeded', '', x'', 0, 0, 0);"
                    "INSERT INTO tasks (job_id, task_index, workload_key, dag_id, target, "
                    "description) VALUES ('j', 0, 'key', 2, 'llvm', 'pool')",
                    two, three)
            .c_str()));
    for (const char* row : {"0, 1, 0.1", "1, 2, 0.2", "2, 2, 0.3", "3, NULL, 0.05"}) {
      ASSERT_OK(raw->Execute(
          fmt::format("INSERT INTO records (job_id, task_index, workload_key, target, hardware, "
                      "steps, costs_s, error, message, timestamp_s, device, builder, runner, "
                      "stopped_early, trial, dag_id, mean_cost_s) VALUES ('j', 0, 'key', 'llvm', "
                      "'[0, 0, 0, 0, 0, 0, 0, 0]', '[]', '[1]', 0, '', 3, '', '', '', 0, {})",
                      row)
              .c_str()));
    }
  }
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  const auto best = [&](const WorkloadRef& workload) {
    std::vector<uint32_t> trials;
    const auto records = store->BestRecords(workload, "");
    EXPECT_OK(records);
    for (const Record& record : *records) trials.push_back(record.trial);
    return trials;
  };
  EXPECT_THAT(best({.id = two}), testing::ElementsAre(0));
  EXPECT_THAT(best({.id = three}), testing::ElementsAre(1));
  EXPECT_THAT(best({.keys = {"key"}}), testing::UnorderedElementsAre(0, 1, 3));
  EXPECT_EQ(store->TasksOfJob("j")->front().workload_id, three);
  EXPECT_EQ(store->GetRecord(1)->dag, "dag 2x2");
}

// The file is of the version before device models.
TEST_F(SqliteStoreTest, RecordsOfAnOlderFileAreOfNoKnownDevice) {
  {
    ASSERT_OK_AND_ASSIGN(auto raw, Raw());
    ASSERT_OK(sqlite::Migrate(*raw, Migrations().first(11), false));
    ASSERT_OK(raw->Execute(
        "INSERT INTO jobs (number, id, name, user, priority, state, message, spec, created_ms, "
        "started_ms, finished_ms) VALUES (1, 'j', '', '', 0, 'succeeded', '', x'', 0, 0, 0);"
        "INSERT INTO records (job_id, task_index, workload_key, target, hardware, steps, costs_s, "
        "error, message, timestamp_s, device, builder, runner, stopped_early, trial, mean_cost_s) "
        "VALUES ('j', 0, 'key', 'llvm', '[0, 0, 0, 0, 0, 0, 0, 0]', '[]', '[1]', 0, '', 3, '', '', "
        "'', 0, 0, 1)"));
  }
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  EXPECT_EQ(store->GetRecord(1)->device_model, "");
  EXPECT_EQ(store->Calibrations()->size(), 0u);
  ASSERT_OK(store->AddRecord(TestRecord("j", 1)));
  ASSERT_OK(store->AddRecord(TestRecord("j", 2)));
  EXPECT_EQ(store->GetRecord(3)->device_model, TestRecord("j", 2).device_model);
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  ASSERT_OK_AND_ASSIGN(auto query, raw->Prepare("SELECT count(*) FROM device_models"));
  ASSERT_OK(query.Step().status());
  EXPECT_EQ(query.Int(0), 1);
}

// The file is of the version before cost models and pinned schedules.
TEST_F(SqliteStoreTest, AnOlderFileHasNoModelsAndTakesThem) {
  {
    ASSERT_OK_AND_ASSIGN(auto raw, Raw());
    ASSERT_OK(sqlite::Migrate(*raw, Migrations().first(14), false));
  }
  const ModelRow row{.name = "m", .created_s = 3, .bytes = 2, .info = "{}", .file = "ab"};
  {
    ASSERT_OK_AND_ASSIGN(auto store, Open());
    EXPECT_EQ(store->Models()->size(), 0u);
    EXPECT_EQ(store->PinnedSchedules("")->size(), 0u);
    ASSERT_OK(store->AddModel(row));
    ASSERT_OK(store->PinSchedule({.workload_id = "w", .target = "llvm", .steps = "[]"}));
  }
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  EXPECT_EQ(*store->GetModel("m"), row);
  EXPECT_EQ(store->PinnedSchedules("w")->size(), 1u);
}

TEST_F(SqliteStoreTest, ARecordThatAProgramDamagedIsDataLoss) {
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  ASSERT_OK(AddJob(*store, "j"));
  ASSERT_OK(store->AddRecord(TestRecord("j", 0)));
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  for (const char* costs : {"", "[", "[1", "[1,2]", "[1, ]", "[1, 2] ", "[x]", "1"}) {
    ASSERT_OK(raw->Execute(fmt::format("UPDATE records SET costs_s = '{}'", costs).c_str()));
    EXPECT_THAT(store->GetRecord(1), StatusIs(StatusCode::kDataLoss, HasSubstr("costs_s")))
        << costs;
  }
  ASSERT_OK(raw->Execute("UPDATE records SET costs_s = '[1]', hardware = '[1, 2]'"));
  EXPECT_THAT(store->GetRecord(1),
              StatusIs(StatusCode::kDataLoss, HasSubstr("2 hardware parameters, expected 8")));
}

// Protobuf messages refuse texts that are no UTF-8 as a whole.
TEST_F(SqliteStoreTest, TextsThatAreNoUtf8AreReadAsUtf8) {
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  JobRow job;
  job.id = "j";
  job.name = "bad \xff name";
  job.spec = "\xff";
  ASSERT_OK(store->AddJob(job));
  Record record = TestRecord("j", 0);
  record.message = "gr\xc3\xbc\xc3\x9f, \xc3";
  record.times = "\xff";
  ASSERT_OK(store->AddRecord(record));
  EXPECT_EQ(store->GetJob("j")->name, "bad ? name");
  EXPECT_EQ(store->GetJob("j")->spec, "\xff") << "bytes stay bytes";
  EXPECT_EQ(store->GetRecord(1)->message, "gr\xc3\xbc\xc3\x9f, ?");
  EXPECT_EQ(store->GetRecord(1)->times, "\xff");
}

TEST_F(SqliteStoreTest, ReadersSeeRecordsWhileTheyAreWritten) {
  ASSERT_OK_AND_ASSIGN(auto writer, Open());
  ASSERT_OK(AddJob(*writer, "j"));
  ASSERT_OK_AND_ASSIGN(auto reader, Open(OpenOptions::Mode::kReadOnly));
  for (uint32_t trial = 0; trial < 3; ++trial) {
    ASSERT_OK(writer->AddRecord(TestRecord("j", trial, 1.0 / (1 + trial))));
    ASSERT_OK_AND_ASSIGN(const auto best, reader->BestRecords({.id = kTestId}, ""));
    ASSERT_EQ(best.size(), 1u);
    EXPECT_EQ(best[0].trial, trial);
  }
  EXPECT_THAT(reader->AddRecord(TestRecord("j", 9)),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("read-only")));
}

TEST_F(SqliteStoreTest, ReadersDoNotWaitForAWriter) {
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  ASSERT_OK(AddJob(*store, "j"));
  ASSERT_OK(store->AddRecord(TestRecord("j", 0)));
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  std::atomic<bool> written = false;
  std::thread writer;
  {
    ASSERT_OK_AND_ASSIGN(const auto transaction, sqlite::Transaction::Begin(*raw));
    writer = std::thread([&] {
      // Waits for the other process.
      EXPECT_OK(store->AddRecord(TestRecord("j", 1)));
      written = true;
    });
    for (int i = 0; i < 100; ++i) {
      ASSERT_OK_AND_ASSIGN(const auto best, store->BestRecords({.id = kTestId}, ""));
      EXPECT_EQ(best.size(), 1u);
      ASSERT_OK(store->GetRecord(1));
      ASSERT_OK(store->CountTrials("j"));
    }
    EXPECT_FALSE(written);
  }
  writer.join();
  EXPECT_TRUE(written);
}

TEST_F(SqliteStoreTest, MoreReadersThanConnectionsTakeTurns) {
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  ASSERT_OK(AddJob(*store, "j"));
  std::vector<std::thread> readers;
  for (int t = 0; t < 24; ++t) {
    readers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_OK(store->BestRecords({.id = kTestId}, ""));
    });
  }
  for (uint32_t trial = 0; trial < 20; ++trial) ASSERT_OK(store->AddRecord(TestRecord("j", trial)));
  for (std::thread& reader : readers) reader.join();
}

TEST_F(SqliteStoreTest, TwoWritersWaitForEachOther) {
  ASSERT_OK_AND_ASSIGN(auto first, Open());
  ASSERT_OK_AND_ASSIGN(auto second, Open());
  ASSERT_OK(AddJob(*first, "a"));
  ASSERT_OK(AddJob(*second, "b"));
  auto write = [](Store& store, const char* job) {
    for (uint32_t trial = 0; trial < 50; ++trial)
      ASSERT_OK(store.AddRecord(TestRecord(job, trial)));
  };
  std::thread other([&] { write(*second, "b"); });
  write(*first, "a");
  other.join();
  ASSERT_OK_AND_ASSIGN(const auto records, first->RecordsOfWorkload({.id = kTestId}, ""));
  EXPECT_EQ(records.size(), 100);
}

// Queries whose cost must not grow with the number of records use their index, without a sort.
TEST_F(SqliteStoreTest, BestQueriesAreIndexLookUps) {
  ASSERT_OK(Open());
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  auto plan = [&](std::string_view where, std::string_view order = "") {
    std::string text;
    auto query =
        raw->Prepare(fmt::format("EXPLAIN QUERY PLAN SELECT * FROM records r WHERE {} ORDER BY {}"
                                 "measured_as DESC, stopped_early, mean_cost_s, r.id LIMIT 1",
                                 where, order));
    EXPECT_OK(query.status());
    while (*query->Step()) text += query->Text(3) + "\n";
    return text;
  };
  for (const char* where : {"workload = ?", "workload = ? AND target > ?",
                            "workload = ? AND target = ? AND measured_as < ?"}) {
    EXPECT_THAT(plan(fmt::format("{} AND error = 0", where), "target, "),
                testing::AllOf(HasSubstr("INDEX best_of_workload"), Not(HasSubstr("TEMP B-TREE"))));
  }
  EXPECT_THAT(plan("workload = ? AND target = ? AND error = 0"),
              testing::AllOf(HasSubstr("INDEX best_of_workload"), Not(HasSubstr("TEMP B-TREE"))));
  EXPECT_THAT(plan("job_id = ? AND task_index = ? AND error = 0 AND job_id != 'import'"),
              testing::AllOf(HasSubstr("INDEX best_of_task"), Not(HasSubstr("TEMP B-TREE"))));
}

// Spans of drift are marked again and again while they go on.
TEST_F(SqliteStoreTest, MarkingIsAnIndexLookUpAndWritesOnce) {
  ASSERT_OK(Open());
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  ASSERT_OK_AND_ASSIGN(
      auto plan, raw->Prepare("EXPLAIN QUERY PLAN UPDATE records SET mark = ? WHERE runner = ? AND "
                              "runner != '' AND timestamp_s BETWEEN ? AND ? AND mark = '' AND "
                              "remeasured_costs_s = '[]'"));
  ASSERT_TRUE(*plan.Step());
  EXPECT_THAT(plan.Text(3), HasSubstr("SEARCH records USING INDEX records_of_runner"));
}

// The query for the best of all computations sorts no records.
TEST_F(SqliteStoreTest, TheBestOfAllAreIndexLookUps) {
  ASSERT_OK(Open());
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  for (const char* query :
       {"SELECT target FROM records WHERE error = 0 AND workload = ? AND target > ? "
        "ORDER BY target LIMIT 1",
        "SELECT workload, target FROM records WHERE error = 0 AND workload > ? "
        "ORDER BY workload, target LIMIT 1",
        "SELECT measured_as, stopped_early, mean_cost_s, id FROM records WHERE error = 0 AND "
        "workload = ? AND target = ? AND id > ? "
        "ORDER BY measured_as DESC, stopped_early, mean_cost_s, id"}) {
    ASSERT_OK_AND_ASSIGN(auto plan, raw->Prepare(fmt::format("EXPLAIN QUERY PLAN {}", query)));
    ASSERT_TRUE(*plan.Step());
    EXPECT_THAT(plan.Text(3), HasSubstr("SEARCH records USING INDEX best_of_workload"));
    EXPECT_FALSE(*plan.Step()) << plan.Text(3);
  }
}

// The query for the best of a span of time reads no rows, and the trials of a job are found by an
// index that has all that a page of them needs.
TEST_F(SqliteStoreTest, TheBestOfATimeAndTheTrialsOfAJobAreReadFromIndexes) {
  ASSERT_OK(Open());
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  const std::pair<const char*, const char*> cases[] = {
      {"SELECT timestamp_s / 86400 FROM records WHERE error = 0 AND timestamp_s / 86400 < ? "
       "ORDER BY timestamp_s / 86400 DESC LIMIT 1",
       "COVERING INDEX best_of_day (<expr><?)"},
      {"SELECT measured_as, stopped_early, mean_cost_s, id FROM records r WHERE error = 0 AND "
       "timestamp_s / 86400 = ? AND +timestamp_s BETWEEN ? AND ? AND +id > ? "
       "ORDER BY measured_as DESC, stopped_early, mean_cost_s, r.id",
       "COVERING INDEX best_of_day (<expr>=?)"},
      {"SELECT measured_as, stopped_early, mean_cost_s, id FROM records r WHERE error = 0 AND "
       "workload = ? AND target = ? AND id > ? AND +timestamp_s BETWEEN ? AND ? "
       "ORDER BY measured_as DESC, stopped_early, mean_cost_s, r.id",
       "INDEX best_of_workload (workload=? AND target=?)"},
      {"SELECT task_index FROM records WHERE error = 0 AND job_id = ? AND job_id != 'import' AND "
       "task_index > ? ORDER BY task_index LIMIT 1",
       "INDEX best_of_task (job_id=? AND task_index>?)"},
      {"SELECT measured_as, stopped_early, mean_cost_s, id FROM records r WHERE error = 0 AND "
       "job_id = ?1 AND job_id != 'import' AND task_index = ?2 AND +id > ?3 "
       "AND +timestamp_s BETWEEN ?4 AND ?5 AND substr(target, 1, length(?6)) = ?6 "
       "AND (?7 = '' OR +device = ?7) "
       "ORDER BY measured_as DESC, stopped_early, mean_cost_s, r.id",
       "INDEX best_of_task (job_id=? AND task_index=?)"},
      {"SELECT id FROM records WHERE job_id = ? AND trial >= ? ORDER BY trial LIMIT ?",
       "COVERING INDEX sqlite_autoindex_records_1 (job_id=? AND trial>?)"},
      {"SELECT id FROM records WHERE job_id = ? ORDER BY id DESC LIMIT 1",
       "COVERING INDEX records_of_job (job_id=?)"},
  };
  for (const auto& [query, index] : cases) {
    ASSERT_OK_AND_ASSIGN(auto plan, raw->Prepare(fmt::format("EXPLAIN QUERY PLAN {}", query)));
    ASSERT_TRUE(*plan.Step());
    EXPECT_THAT(plan.Text(3), HasSubstr(index));
    EXPECT_FALSE(*plan.Step()) << plan.Text(3);
  }
  ASSERT_OK_AND_ASSIGN(auto plan,
                       raw->Prepare("EXPLAIN QUERY PLAN SELECT id FROM records r WHERE id > ?1 AND "
                                    "job_id = ?2 AND ?3 = '' ORDER BY id LIMIT ?4"));
  ASSERT_TRUE(*plan.Step());
  EXPECT_THAT(plan.Text(3), HasSubstr("COVERING INDEX records_of_job (job_id=? AND rowid>?)"));
  EXPECT_FALSE(*plan.Step()) << plan.Text(3);
}

// Triggers and views of others would run with Kiln's own statements, and a trigger would make
// SQLite keep copies of the pages that each record changes.
TEST_F(SqliteStoreTest, ViewsTriggersAndVirtualTablesOfOthersAreRefused) {
  ASSERT_OK(Open());
  // The database's own triggers are accepted.
  ASSERT_OK(Open());
  const std::pair<const char*, const char*> cases[] = {
      {"CREATE VIEW best AS SELECT * FROM records", "DROP VIEW best"},
      {"CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM jobs; END", "DROP TRIGGER t"},
      // The trigger has the name of one of Kiln's and another content.
      {"DROP TRIGGER import_shrinks; CREATE TRIGGER import_shrinks AFTER DELETE ON records BEGIN "
       "DELETE FROM jobs; END",
       "DROP TRIGGER import_shrinks"},
      {"CREATE VIRTUAL TABLE v USING fts5(a)", "DROP TABLE v"},
  };
  for (const auto& [make, drop] : cases) {
    ASSERT_OK_AND_ASSIGN(auto raw, Raw());
    if (const Status made = raw->Execute(make); !made.ok()) {
      // This SQLite lacks fts5.
      EXPECT_THAT(Message(made), HasSubstr("fts5"));
      continue;
    }
    for (const auto mode : {OpenOptions::Mode::kCreate, OpenOptions::Mode::kReadOnly}) {
      EXPECT_THAT(Open(mode), StatusIs(StatusCode::kFailedPrecondition,
                                       HasSubstr("expected none but Kiln's own")))
          << make;
    }
    ASSERT_OK(raw->Execute(drop));
    EXPECT_OK(Open());
  }
}

// The trigger must not run, not even during migrations.
TEST_F(SqliteStoreTest, ATriggerInAnOlderFileIsRefusedBeforeItRuns) {
  {
    ASSERT_OK_AND_ASSIGN(auto raw, Raw());
    ASSERT_OK(sqlite::Migrate(*raw, Migrations().first(6), false));
    ASSERT_OK(
        raw->Execute("CREATE TABLE seen (n INTEGER); INSERT INTO seen VALUES (0);"
                     "CREATE TRIGGER spy AFTER UPDATE ON records BEGIN "
                     "UPDATE seen SET n = n + 1; END"));
  }
  EXPECT_THAT(Open(), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("trigger 'spy'")));
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  ASSERT_OK_AND_ASSIGN(const int64_t version, raw->QueryInt("PRAGMA user_version"));
  EXPECT_EQ(version, 6);
}

TEST_F(SqliteStoreTest, ASecondNameIsRefused) {
  const std::string second = folder_.File("second.db");
  {
    ASSERT_OK_AND_ASSIGN(auto store, Open());
    ASSERT_OK(AddJob(*store, "j"));
    ASSERT_EQ(link(path_.c_str(), second.c_str()), 0);
    // Opening the file is refused by either name, and so is writing by a store that has it open.
    for (const std::string& name : {path_, second}) {
      for (const auto mode : {OpenOptions::Mode::kReadWrite, OpenOptions::Mode::kReadOnly}) {
        EXPECT_THAT(
            OpenSqliteStore(name, {.mode = mode}),
            StatusIs(StatusCode::kFailedPrecondition,
                     testing::AllOf(HasSubstr(name + " has 2 names (hard links), expected one"),
                                    HasSubstr("find -samefile"))));
      }
    }
    EXPECT_THAT(AddJob(*store, "k"), StatusIs(StatusCode::kUnavailable, HasSubstr("has 2 names")));
    ASSERT_EQ(unlink(second.c_str()), 0);
    ASSERT_OK(AddJob(*store, "k"));
  }
  ASSERT_OK(Open());
}

// SQLite itself keeps one log for both names.
TEST_F(SqliteStoreTest, ASymbolicLinkIsTheSameDatabase) {
  const std::string other = folder_.File("link.db");
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  ASSERT_EQ(symlink(path_.c_str(), other.c_str()), 0);
  ASSERT_OK(AddJob(*store, "j"));
  ASSERT_OK_AND_ASSIGN(auto by_link,
                       OpenSqliteStore(other, {.mode = OpenOptions::Mode::kReadWrite}));
  ASSERT_OK_AND_ASSIGN(const auto jobs, by_link->LoadUnfinishedJobs());
  EXPECT_EQ(jobs.size(), 1u);
  ASSERT_OK(AddJob(*by_link, "k"));
  ASSERT_OK_AND_ASSIGN(const auto both, store->LoadUnfinishedJobs());
  EXPECT_EQ(both.size(), 2u);
}

TEST_F(SqliteStoreTest, NoTriggerRunsWhereRecordsAreInserted) {
  ASSERT_OK(Open());
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  ASSERT_OK_AND_ASSIGN(const int64_t triggers,
                       raw->QueryInt("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' "
                                     "AND tbl_name = 'records' AND sql LIKE '% INSERT ON %'"));
  EXPECT_EQ(triggers, 0);
}

// A file of the version before autotvm's records keeps its records, and takes some of autotvm.
TEST_F(SqliteStoreTest, AnOlderFileTakesRecordsOfAutotvm) {
  {
    ASSERT_OK_AND_ASSIGN(auto raw, Raw());
    ASSERT_OK(sqlite::Migrate(*raw, Migrations().first(13), false));
    ASSERT_OK(
        raw->Execute("INSERT INTO jobs (number, id, name, user, priority, state, message, spec, "
                     "created_ms, started_ms, finished_ms) VALUES "
                     "(1, 'import', '', '', 0, 'succeeded', '', x'', 0, 0, 0)"));
    ASSERT_OK(raw->Execute(
        "INSERT INTO records (id, job_id, task_index, trial, workload_key, target, hardware, "
        "steps, "
        "costs_s, mean_cost_s, error, message, build_s, run_s, timestamp_s, device, builder, "
        "runner, "
        "stopped_early, max_error, flop_count) VALUES (1, 'import', 0, 7, 'key', 'llvm', "
        "'[0, 0, 0, 0, 0, 0, 0, 0]', '[]', '[0.25]', 0.25, 0, '', 1, 2, 3, '', '', '', 0, 0, 0)"));
  }
  ASSERT_OK_AND_ASSIGN(auto store, Open());
  ASSERT_OK_AND_ASSIGN(const TrialCounts counts, store->CountTrials("import"));
  EXPECT_EQ(counts.total, 1);
  EXPECT_EQ(counts.next_trial, 8u);
  const AutotvmRecord record{.target = "llvm", .task = "t", .costs_s = {1}};
  ASSERT_OK_AND_ASSIGN(const int64_t imported, store->ImportAutotvmRecords({&record, 1}));
  EXPECT_EQ(imported, 1);
  // One look-up finds whether a record is there.
  ASSERT_OK_AND_ASSIGN(auto raw, Raw());
  ASSERT_OK_AND_ASSIGN(
      auto plan, raw->Prepare("EXPLAIN QUERY PLAN SELECT 1 FROM autotvm_records WHERE task = ? AND "
                              "args = ? AND target = ? AND timestamp_s = ? AND config_index = ?"));
  ASSERT_TRUE(*plan.Step());
  EXPECT_THAT(plan.Text(3), HasSubstr("INDEX autotvm_records_of_task"));
}

// ---- Is a record synced to the disk before AddRecord returns? A default VFS counts the writes to
// the log.

std::atomic<int> g_wal_syncs = 0;
// Writes to the log since its last sync: a loss of power would lose them.
std::atomic<int> g_wal_unsynced_writes = 0;
const sqlite3_io_methods* g_real_methods = nullptr;
sqlite3_io_methods g_counting_methods;
sqlite3_vfs* g_real_vfs = nullptr;

int CountingSync(sqlite3_file* file, int flags) {
  ++g_wal_syncs;
  g_wal_unsynced_writes = 0;
  return g_real_methods->xSync(file, flags);
}

int CountingWrite(sqlite3_file* file, const void* data, int size_bytes, sqlite3_int64 offset) {
  ++g_wal_unsynced_writes;
  return g_real_methods->xWrite(file, data, size_bytes, offset);
}

int CountingOpen(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  const int code = g_real_vfs->xOpen(g_real_vfs, name, file, flags, out_flags);
  if (code != SQLITE_OK || (flags & SQLITE_OPEN_WAL) == 0) return code;
  g_real_methods = file->pMethods;
  g_counting_methods = *file->pMethods;
  g_counting_methods.xSync = CountingSync;
  g_counting_methods.xWrite = CountingWrite;
  file->pMethods = &g_counting_methods;
  return code;
}

TEST_F(SqliteStoreTest, ARecordIsOnTheDiskWhenAddRecordReturns) {
  g_real_vfs = sqlite3_vfs_find(nullptr);
  sqlite3_vfs counting = *g_real_vfs;
  counting.zName = "counting";
  counting.xOpen = CountingOpen;
  ASSERT_EQ(sqlite3_vfs_register(&counting, /*makeDflt=*/1), SQLITE_OK);
  {
    ASSERT_OK_AND_ASSIGN(auto store, Open());
    ASSERT_OK(AddJob(*store, "j"));
    for (uint32_t trial = 0; trial < 20; ++trial) {
      const int syncs = g_wal_syncs;
      ASSERT_OK(store->AddRecord(TestRecord("j", trial)));
      EXPECT_GT(g_wal_syncs, syncs);
      EXPECT_EQ(g_wal_unsynced_writes, 0);
    }
    const int syncs = g_wal_syncs;
    std::vector<Record> batch;
    for (uint32_t trial = 20; trial < 120; ++trial) batch.push_back(TestRecord("j", trial));
    ASSERT_OK(store->AddRecords(batch));
    EXPECT_EQ(g_wal_unsynced_writes, 0);
    EXPECT_LE(g_wal_syncs, syncs + 2) << "a batch is one commit";
  }
  sqlite3_vfs_unregister(&counting);
}

}  // namespace
}  // namespace kiln::store
