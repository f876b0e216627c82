#include "store/best_of_jobs.h"

#include <memory>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "store/folder_testing.h"
#include "store/record_testing.h"
#include "store/schema.h"
#include "store/sqlite_store.h"

namespace kiln::store {
namespace {

using Kind = BestOfJobs::Kind;

TEST(BestOfJobsTest, AnAnswerIsKeptUntilAWriteMayChangeIt) {
  BestOfJobs bests;
  const BestOfJobs::Question best{Kind::kBest, "j", 0}, loops{Kind::kUnscheduled, "j", 0};
  // A job that gets no records is not kept.
  bests.Keep(best, bests.BeginRead("j"), std::nullopt);
  EXPECT_FALSE(bests.Find(best).has_value());
  bests.Begin("j");
  const auto keep = [&](const Record& record) {
    for (const auto& question : {best, loops}) bests.Keep(question, bests.BeginRead("j"), record);
  };
  keep(TestRecord("j", 0, 2e-3));
  bests.Add(TestRecord("j", 1, 3e-3));
  bests.Add(FailedRecord("j", 2, 4));
  EXPECT_TRUE(bests.Find(best).has_value());
  EXPECT_TRUE(bests.Find(loops).has_value());
  bests.Add(TestRecord("j", 3, 1e-3));
  EXPECT_FALSE(bests.Find(best).has_value());
  EXPECT_TRUE(bests.Find(loops).has_value());
  Record unscheduled = TestRecord("j", 4, 9e-3);
  unscheduled.steps = kNoSteps;
  bests.Add(unscheduled);
  EXPECT_FALSE(bests.Find(loops).has_value());
  keep(TestRecord("j", 3, 1e-3));
  bests.Change("j", 1);
  EXPECT_TRUE(bests.Find(best).has_value());
  bests.Change("j", 0);
  EXPECT_FALSE(bests.Find(best).has_value());
}

// A reader may see the database before a write, and come back after it.
TEST(BestOfJobsTest, AnAnswerThatAWriteHasOvertakenIsNotKept) {
  BestOfJobs bests;
  bests.Begin("j");
  const BestOfJobs::Question best{Kind::kBest, "j", 0};
  auto version = bests.BeginRead("j");
  bests.Add(TestRecord("j", 0, 1e-3));
  bests.Keep(best, version, std::nullopt);
  EXPECT_FALSE(bests.Find(best).has_value());
  version = bests.BeginRead("j");
  bests.Forget("j");
  bests.Begin("j");
  bests.Keep(best, version, std::nullopt);
  EXPECT_FALSE(bests.Find(best).has_value());
}

TEST(BestOfJobsTest, TheNumbersOfJobsAndAnswersAreBounded) {
  BestOfJobs bests;
  for (size_t i = 0; i <= BestOfJobs::kMostJobs; ++i) bests.Begin(std::to_string(i));
  EXPECT_FALSE(bests.Knows("0"));
  const std::string job = std::to_string(BestOfJobs::kMostJobs);
  const auto keep = [&](uint32_t task) {
    bests.Keep({Kind::kBest, job, task}, bests.BeginRead(job), std::nullopt);
  };
  for (uint32_t task = 0; task < BestOfJobs::kMostAnswers; ++task) keep(task);
  EXPECT_TRUE(bests.Find({Kind::kBest, job, 0}).has_value());
  keep(BestOfJobs::kMostAnswers);
  EXPECT_FALSE(bests.Find({Kind::kBest, job, 0}).has_value());
  EXPECT_TRUE(bests.Find({Kind::kBest, job, BestOfJobs::kMostAnswers}).has_value());
}

class KeptBestsTest : public testing::Test {
 protected:
  std::unique_ptr<Store> Open() { return *OpenSqliteStore(path_, {.busy_timeout_ms = 5'000}); }

  static std::string Text(const StatusOr<std::optional<Record>>& found) {
    EXPECT_OK(found.status());
    if (!found.ok() || !found->has_value()) return "none";
    return fmt::format("{} {} {}", (*found)->id, Describe(**found),
                       fmt::join((*found)->equal_ids, ","));
  }

  // Compares the answers of the store with those of the file.
  void Compare(Store& store, const std::string& after) {
    const auto file = Open();
    for (const char* job : {"a", "b"}) {
      for (uint32_t task = 0; task < 3; ++task) {
        EXPECT_EQ(Text(store.BestOfJob(job, task)), Text(file->BestOfJob(job, task))) << after;
        EXPECT_EQ(Text(store.UnscheduledOfJob(job, task)), Text(file->UnscheduledOfJob(job, task)))
            << after;
      }
    }
  }

  Record RandomRecord(uint32_t trial) {
    const std::string job = Chance(rng_, 0.5) ? "a" : "b";
    Record record = TestRecord(job, trial, 1e-3 * static_cast<double>(UniformIn(rng_, 1, 12)));
    if (Chance(rng_, 0.2)) record = FailedRecord(job, trial, 4);
    record.task_index = static_cast<uint32_t>(UniformInt(rng_, 3));
    record.stopped_early = Chance(rng_, 0.1);
    if (Chance(rng_, 0.1)) record.steps = kNoSteps;
    if (Chance(rng_, 0.3)) record.measured_as = "call/warm/free";
    return record;
  }

  std::string Change(Store& store, uint32_t trial) {
    const int64_t id = ids_.empty() ? 0 : ids_[UniformInt(rng_, std::ssize(ids_))];
    switch (UniformInt(rng_, 8)) {
      case 0: {
        if (id == 0) return "nothing";
        Remeasurement again{.id = id, .readings = 3, .run_s = 0.5};
        again.costs_s = {1e-3 * static_cast<double>(UniformIn(rng_, 1, 12))};
        again.confidence_s = 5e-4;
        if (Chance(rng_, 0.2)) again = {.id = id, .run_s = 0.5, .error = 5, .message = "wrong"};
        EXPECT_OK(store.SetRemeasurements({&again, 1}));
        return "a remeasurement";
      }
      case 1:
        EXPECT_OK(store.MarkRecords({.runner = "runner-1", .reason = fmt::format("m{}", trial)}));
        return "marks";
      case 2:
        if (id == 0) return "nothing";
        std::erase(ids_, id);
        EXPECT_OK(store.DeleteRecords({&id, 1}));
        return "a deletion";
      default: {
        const auto added = store.AddRecord(RandomRecord(trial));
        EXPECT_OK(added);
        ids_.push_back(added.value_or(0));
        return "a record";
      }
    }
  }

  const TestFolder folder_;
  const std::string path_ = folder_.File("kiln.db");
  Rng rng_{20261129};
  std::vector<int64_t> ids_;
};

TEST_F(KeptBestsTest, AreThoseOfTheFileAfterEachWrite) {
  const auto store = Open();
  for (const char* job : {"a", "b"}) ASSERT_OK(store->AddJob({.id = job}));
  for (uint32_t trial = 0; trial < 150; ++trial) {
    const std::string after = fmt::format("{}: {}", trial, Change(*store, trial));
    Compare(*store, after);
    if (HasFailure()) return;
  }
}

// Somebody who changes the file behind the store's back, which nobody may while a job goes on,
// shows what is read.
TEST_F(KeptBestsTest, AreReadOnceWhileAJobGoesOnAndFromTheFileOnceItHasEnded) {
  const auto store = Open();
  ASSERT_OK(store->AddJob({.id = "a"}));
  ASSERT_OK(store->AddRecord(TestRecord("a", 0, 1e-3)));
  EXPECT_EQ((*store->BestOfJob("a", 0))->trial, 0u);
  ASSERT_OK_AND_ASSIGN(const auto raw, sqlite::Database::Open(path_, kApplicationId, {}));
  ASSERT_OK(raw->Execute("DELETE FROM records WHERE trial = 0"));
  for (uint32_t trial = 1; trial < 50; ++trial) {
    ASSERT_OK(store->AddRecord(TestRecord("a", trial, 1e-2)));
    EXPECT_EQ((*store->BestOfJob("a", 0))->trial, 0u);
  }
  ASSERT_OK(store->UpdateJobState("a", JobState::kCancelled, "", 1));
  EXPECT_EQ((*store->BestOfJob("a", 0))->trial, 1u);
  // A result that comes late is of a job that has ended, too.
  ASSERT_OK(store->AddRecord(TestRecord("a", 50, 1e-2)));
  EXPECT_EQ((*store->BestOfJob("a", 0))->trial, 1u);
  ASSERT_OK(raw->Execute("DELETE FROM records WHERE trial = 1"));
  EXPECT_EQ((*store->BestOfJob("a", 0))->trial, 2u);
}

}  // namespace
}  // namespace kiln::store
