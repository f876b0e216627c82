// Tests users, their totals, and who did what.
#include <limits>

#include "store/store_testing.h"

namespace kiln::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_P(StoreTest, LimitsAndUseOfAUserAreSetApart) {
  const UserLimits limits{.weight = 3,
                          .trials_per_day = 100,
                          .devices = 2,
                          .jobs = 4,
                          .stored_bytes = uint64_t{1} << 40};
  const std::vector<UserUse> uses = {
      {.name = "bob", .device_s = 1.5, .at_ms = 7, .queue_use = -2.5},
      {.name = "ann", .device_s = 0.5, .at_ms = 8}};
  ASSERT_OK(store_->SetUserLimits("bob", limits));
  ASSERT_OK(store_->SetUserUses(uses));
  const UserRow ann{.limits = {}, .use = uses[1]}, bob{.limits = limits, .use = uses[0]};
  EXPECT_EQ(*store_->Users(), (std::vector<UserRow>{ann, bob}));
  ASSERT_OK(store_->SetUserLimits("bob", {}));
  ASSERT_OK_AND_ASSIGN(const auto users, store_->Users());
  EXPECT_EQ(users[1].use, uses[0]);
  EXPECT_EQ(users[1].limits, UserLimits());
}

TEST_P(StoreTest, AWeightThatIsNoneIsRefused) {
  for (const double weight : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), 1e7}) {
    EXPECT_THAT(store_->SetUserLimits("ann", {.weight = weight}),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("above 0")));
  }
  EXPECT_EQ(store_->Users()->size(), 0u);
}

TEST_P(StoreTest, TotalsOfAUserAreThoseOfHisJobs) {
  const auto add = [&](const std::string& id, const std::string& user, JobState state) {
    ASSERT_OK(store_->AddJob({.id = id, .user = user, .trials = 10, .state = state}));
  };
  add("running", "ann", JobState::kRunning);
  add("paused", "ann", JobState::kPaused);
  add("done", "ann", JobState::kSucceeded);
  add("other", "bob", JobState::kQueued);
  uint64_t bytes = 0;
  for (const auto& [job, timestamp_s] : std::vector<std::pair<std::string, int64_t>>{
           {"running", 100}, {"running", 99}, {"done", 101}, {"other", 102}}) {
    Record record = TestRecord(job, static_cast<uint32_t>(timestamp_s), 1e-3);
    record.timestamp_s = timestamp_s;
    Add(record);
    if (job != "other") bytes += StoredBytes(record);
  }
  ASSERT_OK_AND_ASSIGN(const UserTotals totals, store_->TotalsOfUser("ann", 100, true));
  EXPECT_EQ(totals.unfinished_jobs, 2u);
  EXPECT_EQ(totals.trials_to_come, 18u);
  EXPECT_EQ(totals.trials_since, 2u);
  EXPECT_EQ(totals.stored_bytes, bytes);
  ASSERT_OK_AND_ASSIGN(const UserTotals without, store_->TotalsOfUser("ann", 100, false));
  EXPECT_EQ(without.trials_since, 2u);
  EXPECT_EQ(without.stored_bytes, 0u);
  ASSERT_OK_AND_ASSIGN(const UserTotals none, store_->TotalsOfUser("nobody", 0, true));
  EXPECT_EQ(none.unfinished_jobs + none.trials_to_come + none.trials_since + none.stored_bytes, 0u);
}

TEST_P(StoreTest, StoredBytesFollowEachChangeOfTheRecords) {
  for (const char* id : {"a", "b"}) ASSERT_OK(store_->AddJob({.id = id, .user = "ann"}));
  std::vector<int64_t> ids;
  // Compares with the sum over the records as they are now.
  const auto check = [&] {
    uint64_t bytes = 0;
    for (const int64_t id : ids) bytes += StoredBytes(*store_->GetRecord(id));
    ASSERT_OK_AND_ASSIGN(const UserTotals totals, store_->TotalsOfUser("ann", 0, true));
    EXPECT_EQ(totals.stored_bytes, bytes);
  };
  check();
  for (const uint32_t trial : {0u, 1u, 2u}) {
    ids.push_back(Add(TestRecord("a", trial)));
    ids.push_back(Add(FailedRecord("b", trial, 5)));
    check();
  }
  ASSERT_OK(store_->SetRemeasurements(std::vector<Remeasurement>{
      {.id = ids[0], .costs_s = {0.5, 0.25}, .readings = 2, .run_s = 1}}));
  check();
  ASSERT_OK_AND_ASSIGN(const int64_t marked,
                       store_->MarkRecords({.runner = "runner-1", .reason = "a slow canary"}));
  EXPECT_GT(marked, 0);
  check();
  ASSERT_OK(store_->DeleteRecords(std::vector<int64_t>{ids.back()}));
  ids.pop_back();
  check();
  ASSERT_OK_AND_ASSIGN(
      const int64_t imported,
      store_->ImportRecords("b", std::vector<Record>{TestRecord("", 77), TestRecord("", 78)}));
  EXPECT_EQ(imported, 2);
  ASSERT_OK_AND_ASSIGN(const auto records, store_->RecordsOfJob("b", 2));
  for (const Record& record : records) ids.push_back(record.id);
  check();
}

TEST_P(StoreTest, APausedJobStaysPausedUntilItIsReopenedOrCancelled) {
  AddJob("j");
  ASSERT_OK(store_->UpdateJobState("j", JobState::kRunning, "", 1));
  ASSERT_OK(store_->UpdateJobState("j", JobState::kPaused, "paused by ann", 2));
  ASSERT_OK(store_->UpdateJobState("j", JobState::kPaused, "paused by bob", 3));
  for (const JobState state :
       {JobState::kQueued, JobState::kRunning, JobState::kSucceeded, JobState::kFailed}) {
    EXPECT_THAT(store_->UpdateJobState("j", state, "", 4),
                StatusIs(StatusCode::kFailedPrecondition, HasSubstr("is paused")));
  }
  ASSERT_OK_AND_ASSIGN(const auto unfinished, store_->LoadUnfinishedJobs());
  ASSERT_EQ(unfinished.size(), 1u);
  EXPECT_EQ(unfinished[0].state, JobState::kPaused);
  EXPECT_EQ(unfinished[0].message, "paused by ann");
  EXPECT_EQ(unfinished[0].fruitless_runs, 0);
  EXPECT_FALSE(unfinished[0].finished_ms.has_value());
  ASSERT_OK(store_->ReopenJob("j"));
  EXPECT_EQ(store_->GetJob("j")->state, JobState::kQueued);
  ASSERT_OK(store_->UpdateJobState("j", JobState::kPaused, "", 5));
  ASSERT_OK(store_->UpdateJobState("j", JobState::kCancelled, "", 6));
  EXPECT_THAT(store_->UpdateJobState("j", JobState::kPaused, "", 7),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("already cancelled")));
}

TEST_P(StoreTest, TheAuditKeepsTheNewestEntries) {
  for (int i = 1; i <= 5; ++i) {
    ASSERT_OK(store_->AddAudit({.at_ms = i * 10,
                                .user = i % 2 == 0 ? "ann" : "bob",
                                .call = "Scheduler.Submit",
                                .subject = fmt::format("job {}", i),
                                .refused = i == 4 ? "no" : ""},
                               /*keep=*/3));
  }
  const auto ids = [&](std::string_view user, int64_t since_ms, uint32_t limit) {
    std::vector<int64_t> found;
    const auto entries = store_->Audit(user, since_ms, limit);
    EXPECT_OK(entries);
    for (const AuditRow& entry : *entries) found.push_back(entry.id);
    return found;
  };
  EXPECT_THAT(ids("", 0, 100), ElementsAre(5, 4, 3));
  EXPECT_THAT(ids("", 40, 100), ElementsAre(5, 4));
  EXPECT_THAT(ids("bob", 0, 100), ElementsAre(5, 3));
  EXPECT_THAT(ids("", 0, 1), ElementsAre(5));
  ASSERT_OK_AND_ASSIGN(const auto entries, store_->Audit("ann", 0, 10));
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0], (AuditRow{.id = 4,
                                  .at_ms = 40,
                                  .user = "ann",
                                  .call = "Scheduler.Submit",
                                  .subject = "job 4",
                                  .refused = "no"}));
  // Entries that are too old go, whoever made them.
  EXPECT_EQ(*store_->PruneAudit(40), 1);
  EXPECT_EQ(*store_->PruneAudit(40), 0);
  EXPECT_THAT(ids("", 0, 100), ElementsAre(5, 4));
}

}  // namespace
}  // namespace kiln::store
