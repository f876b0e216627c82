// The jobs of a scheduler with fake workers, as the tests of Jobs share them. Every test runs with
// both stores.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "base/status_testing.h"
#include "scheduler/dispatch/workers_testing.h"
#include "scheduler/jobs/jobs.h"
#include "scheduler/values/job_testing.h"
#include "store/folder_testing.h"
#include "store/memory_store.h"
#include "store/sqlite_store.h"

namespace kiln::scheduler {

// The parameter tells whether the store is SQLite.
class JobsTest : public testing::TestWithParam<bool> {
 protected:
  JobsTest() { OpenStore(); }

  void OpenStore() {
    store_.reset();
    if (GetParam()) {
      auto store = store::OpenSqliteStore(folder_.File("kiln.db"));
      KILN_CHECK(store.ok(), "{}", store.status().ToString());
      store_ = *std::move(store);
    } else {
      store_ = store::NewMemoryStore();
    }
  }

  void AddBuilder(FakeBuilder& builder, const std::string& id = "b1", uint32_t slots = 2) {
    cluster_.AddBuilder(builder, id, slots);
  }
  void AddRunner(FakeRunner& runner, const std::string& id = "r1") {
    cluster_.AddRunner(runner, id);
  }

  void Start(int max_running = 4) {
    events_ = std::make_unique<EventHub>();
    Jobs::Options options;
    options.max_running = max_running;
    options.dispatch = QuickDispatch();
    jobs_ = std::make_unique<Jobs>(*store_, cluster_.factory(), *events_, options);
    ASSERT_OK(jobs_->Start());
  }
  // Starts with one builder and one runner.
  void Serve(FakeBuilder& builder, FakeRunner& runner) {
    AddBuilder(builder);
    AddRunner(runner);
    Start();
  }
  // Restarts like a scheduler that was killed: nobody is told anything. The file is opened anew;
  // the memory store stays.
  void Restart() {
    jobs_.reset();
    if (GetParam()) OpenStore();
    Start();
  }

  std::string Submit(const v1::JobSpec& spec) {
    auto id = jobs_->Submit(spec);
    KILN_CHECK(id.ok(), "{}", id.status().ToString());
    return *id;
  }
  v1::JobStatus Status(const std::string& id) { return *jobs_->StatusOf(*store_->GetJob(id)); }
  v1::JobState State(const std::string& id) { return Status(id).state(); }
  bool Ends(const std::string& id) {
    return Eventually([&] { return store::IsFinal(store_->GetJob(id)->state); });
  }
  size_t Count(const std::string& id) { return store_->RecordsOfJob(id, 0)->size(); }

  // Expects as many records as asked for, numbered without gaps, and no candidate twice.
  void ExpectExactly(const std::string& id, size_t trials) {
    const auto records = *store_->RecordsOfJob(id, 0);
    ASSERT_EQ(records.size(), trials);
    std::set<std::string> candidates;
    for (size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(records[i].trial, i);
      candidates.insert(fmt::format("{} {}", records[i].task_index, records[i].steps));
    }
    EXPECT_EQ(candidates.size(), trials);
  }

  store::TestFolder folder_;
  std::unique_ptr<store::Store> store_;
  FakeCluster cluster_;
  std::unique_ptr<EventHub> events_;
  std::unique_ptr<Jobs> jobs_;
};

inline std::string StoreName(const testing::TestParamInfo<bool>& info) {
  return info.param ? "Sqlite" : "Memory";
}

// Makes each call of a worker take `ms`.
inline FakeRunner::Hook Slow(int ms) {
  return [ms](auto&, const auto&, auto&) {
    absl::SleepFor(absl::Milliseconds(ms));
    return grpc::Status::OK;
  };
}

}  // namespace kiln::scheduler
