// Tests how long a pool keeps its leases.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status_testing.h"
#include "rpc/lease_source_testing.h"
#include "scheduler/dispatch/worker_pool.h"

namespace kiln::scheduler {
namespace {

v1::WorkerState WorkerOfOneSlot(const std::string& id) {
  v1::WorkerState worker;
  worker.set_id(id);
  worker.set_slots(1);
  return worker;
}

// Counts the threads that ask.
class CountingSource : public LeaseSource {
 public:
  using LeaseSource::Acquire;
  StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop,
                                 const std::vector<std::string>& avoid) override {
    ++asking;
    StatusOr<LeasedWorker> lease = workers.Acquire(timeout, std::move(stop), avoid);
    --asking;
    return lease;
  }

  FakeLeaseSource workers;
  std::atomic<int> asking{0};
};

// Asks `done` every few milliseconds. Returns false after half a minute.
template <typename Done>
bool Eventually(const Done& done) {
  for (int i = 0; i < 6'000 && !done(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return done();
}

// The pool asked for three workers when there were items. The first one has done them all when the
// next one comes, which another scheduler may wait for.
TEST(WorkerPoolLeasesTest, ALeaseThatComesTooLateIsLetGo) {
  CountingSource source;
  std::atomic<int> done{0};
  WorkerPool pool({.most_leases = 3, .idle_release = std::chrono::minutes(10)}, source,
                  [&](WorkItemPtr, const LeasedWorker&, std::stop_token, WorkerPool::Done end) {
                    ++done;
                    end({});
                  });
  for (int i = 0; i < 3; ++i) pool.Push(std::make_unique<WorkItem>());
  ASSERT_TRUE(Eventually([&] { return source.asking == 3; }));
  FakeLeaseSource& workers = source.workers;
  workers.AddWorker(WorkerOfOneSlot("first"));
  ASSERT_TRUE(Eventually([&] { return done == 3; }));
  EXPECT_EQ(workers.held(), 1);
  workers.AddWorker(WorkerOfOneSlot("second"));
  // It has come twice: for each of the other two that the pool asked for.
  EXPECT_TRUE(Eventually([&] { return workers.acquired() == 3 && workers.held() == 1; }))
      << workers.acquired() << " leases were acquired, and " << workers.held() << " are held";
}

// The lease that a job begins with waits for the job's first trial.
TEST(WorkerPoolLeasesTest, ALeaseToBeginWithWaits) {
  FakeLeaseSource source;
  source.AddWorker(WorkerOfOneSlot("first"));
  ASSERT_OK_AND_ASSIGN(LeasedWorker first, source.Acquire(absl::Seconds(30), {}));
  std::atomic<int> done{0};
  WorkerPool pool(
      {.most_leases = 1, .idle_release = std::chrono::minutes(10)}, source,
      [&](WorkItemPtr, const LeasedWorker&, std::stop_token, WorkerPool::Done end) {
        ++done;
        end({});
      },
      nullptr, std::move(first));
  // A lease that does not wait is let go after a tenth of a second.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(source.held(), 1);
  pool.Push(std::make_unique<WorkItem>());
  EXPECT_TRUE(Eventually([&] { return done == 1; }));
  EXPECT_EQ(source.acquired(), 1);
}

}  // namespace
}  // namespace kiln::scheduler
