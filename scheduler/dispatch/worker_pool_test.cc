#include "scheduler/dispatch/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "rpc/lease_source_testing.h"

namespace kiln::scheduler {
namespace {

using namespace std::chrono_literals;

template <typename Condition>
bool Eventually(const Condition& condition) {
  for (int i = 0; i < 6'000 && !condition(); ++i) std::this_thread::sleep_for(5ms);
  return condition();
}

// Work that goes on until it is told to end. Thread-safe.
class OpenWork {
 public:
  // Returns what a pool calls for an item. It refers to this object.
  auto Keep() {
    return [this](WorkItemPtr, const LeasedWorker&, std::stop_token, WorkerPool::Done end) {
      std::lock_guard lock(mutex_);
      open_.push_back(std::move(end));
    };
  }
  size_t size() {
    std::lock_guard lock(mutex_);
    return open_.size();
  }
  // Hands over the ends of all work so far.
  std::vector<WorkerPool::Done> Take() {
    std::lock_guard lock(mutex_);
    return std::exchange(open_, {});
  }
  // Ends the work that began as number `i` and has stayed here.
  void End(size_t i) {
    const WorkerPool::Done end = [&] {
      std::lock_guard lock(mutex_);
      return open_.at(i);
    }();
    end({});
  }

 private:
  std::mutex mutex_;
  std::vector<WorkerPool::Done> open_;
};

class WorkerPoolTest : public testing::Test {
 protected:
  void AddWorker(const std::string& id, uint32_t slots = 1) {
    v1::WorkerState worker;
    worker.set_id(id);
    worker.set_slots(slots);
    source_.AddWorker(std::move(worker));
  }
  static WorkerPool::Options Quick(int most_leases) {
    return {.most_leases = most_leases,
            .idle_release = 50ms,
            .first_backoff = 20ms,
            .longest_backoff = 50ms};
  }

  FakeLeaseSource source_;
};

// Each item ends within the call that begins it: the stack must not grow with their number.
TEST_F(WorkerPoolTest, WorkMayEndAtOnce) {
  std::atomic<int> done = 0;
  WorkerPool pool(Quick(1), source_,
                  [&](WorkItemPtr, const LeasedWorker&, std::stop_token, WorkerPool::Done end) {
                    ++done;
                    end({});
                  });
  for (int i = 0; i < 100'000; ++i) pool.Push(std::make_unique<WorkItem>());
  AddWorker("a");
  EXPECT_TRUE(Eventually([&] { return done == 100'000; }));
}

// A lease that is idle for a moment between two items has no other thread look at the time.
TEST_F(WorkerPoolTest, TheEndOfAnItemNeedsNoLookAtTheTime) {
  AddWorker("a");
  WorkerPool::Options options = Quick(1);
  options.idle_release = 1h;
  OpenWork open;
  WorkerPool pool(options, source_, open.Keep());
  constexpr int kItems = 200;
  for (int i = 0; i < kItems; ++i) {
    pool.Push(std::make_unique<WorkItem>());
    ASSERT_TRUE(Eventually([&] { return open.size() == 1; }));
    for (const WorkerPool::Done& end : open.Take()) end({});
  }
  EXPECT_LT(pool.looks(), kItems / 4);
}

// The work of many leases goes on without a thread for each.
TEST_F(WorkerPoolTest, AllLeasesAreUsedAtOnceAndGivenBackWhenIdle) {
  AddWorker("a", 300);
  OpenWork open;
  WorkerPool pool(Quick(300), source_, open.Keep());
  for (int i = 0; i < 300; ++i) pool.Push(std::make_unique<WorkItem>());
  EXPECT_TRUE(Eventually([&] { return open.size() == 300; }));
  EXPECT_EQ(pool.usable(), 300);
  EXPECT_EQ(source_.held(), 300);
  for (const WorkerPool::Done& end : open.Take()) end({});
  EXPECT_TRUE(Eventually([&] { return source_.held() == 0; }));
  EXPECT_EQ(pool.usable(), 0);
}

// The worker in hand does the items one after the other, long before the pool asks for another one.
TEST_F(WorkerPoolTest, ItemsThatAreTakenSoonAskForNoOtherWorker) {
  AddWorker("a", 5);
  WorkerPool::Options options = Quick(5);
  options.idle_release = 10min;
  options.ask_after = 10min;
  OpenWork open;
  WorkerPool pool(options, source_, open.Keep());
  pool.Push(std::make_unique<WorkItem>());
  for (int i = 0; i < 4; ++i) {
    std::vector<WorkerPool::Done> begun;
    ASSERT_TRUE(Eventually([&] {
      if (begun.empty()) begun = open.Take();
      return !begun.empty();
    }));
    EXPECT_EQ(begun.size(), 1u);
    if (i < 3) pool.Push(std::make_unique<WorkItem>());
    for (const WorkerPool::Done& end : begun) end({});
  }
  EXPECT_EQ(source_.acquired(), 1);
}

// The worker in hand is busy for good, so the second item waits until the pool has asked again.
TEST_F(WorkerPoolTest, AnItemThatWaitsGetsAnotherWorker) {
  AddWorker("a");
  OpenWork open;
  WorkerPool pool(Quick(2), source_, open.Keep());
  pool.Push(std::make_unique<WorkItem>());
  ASSERT_TRUE(Eventually([&] { return open.size() == 1; }));
  pool.Push(std::make_unique<WorkItem>());
  AddWorker("b");
  EXPECT_TRUE(Eventually([&] { return open.size() == 2; }));
  for (const WorkerPool::Done& end : open.Take()) end({});
}

TEST_F(WorkerPoolTest, AnItemThatFailsGoesToAnotherWorker) {
  AddWorker("a");
  AddWorker("b");
  std::atomic<int> done = 0;
  WorkerPool pool(
      Quick(2), source_,
      [&](WorkItemPtr item, const LeasedWorker& worker, std::stop_token, WorkerPool::Done end) {
        if (worker.worker().id() == "a") {
          return end({.again = std::move(item), .complaint = "it is broken"});
        }
        ++done;
        end({});
      });
  for (int i = 0; i < 20; ++i) pool.Push(std::make_unique<WorkItem>());
  EXPECT_TRUE(Eventually([&] { return done == 20; }));
}

// The worker's second item ends after its first, and others have stopped to want the lease by then.
TEST_F(WorkerPoolTest, ALeaseThatWasWantedForAWhileGoesOn) {
  AddWorker("a");
  OpenWork open;
  WorkerPool::Options options = Quick(1);
  options.ahead = true;
  WorkerPool pool(options, source_, open.Keep());
  for (int i = 0; i < 2; ++i) pool.Push(std::make_unique<WorkItem>());
  ASSERT_TRUE(Eventually([&] { return open.size() == 2; }));
  source_.Want("a", true);
  open.End(0);
  source_.Want("a", false);
  open.End(1);
  pool.Push(std::make_unique<WorkItem>());
  EXPECT_TRUE(Eventually([&] { return open.size() == 3; }));
  open.End(2);
  EXPECT_TRUE(Eventually([&] { return source_.held() == 0; }));
}

// Other work that there is not does not keep a lease.
TEST_F(WorkerPoolTest, AnIdleLeaseIsLetGoThoughOthersHaveResults) {
  AddWorker("a");
  WorkerPool pool(
      Quick(1), source_,
      [](WorkItemPtr, const LeasedWorker&, std::stop_token, WorkerPool::Done end) { end({}); },
      nullptr, std::nullopt,
      [](const LeasedWorker&, std::stop_token) { return WorkerPool::Piece(); });
  pool.Push(std::make_unique<WorkItem>());
  EXPECT_TRUE(Eventually([&] {
    pool.Poke();
    return source_.acquired() == 1 && source_.held() == 0;
  }));
}

// Join waits for work that goes on, and its lease is given back by then.
TEST_F(WorkerPoolTest, DrainLetsWorkEnd) {
  AddWorker("a");
  std::atomic<bool> begun = false;
  std::jthread other;
  WorkerPool pool(Quick(1), source_,
                  [&](WorkItemPtr, const LeasedWorker&, std::stop_token, WorkerPool::Done end) {
                    begun = true;
                    other = std::jthread([end = std::move(end)] {
                      std::this_thread::sleep_for(50ms);
                      end({});
                    });
                  });
  pool.Push(std::make_unique<WorkItem>());
  pool.Push(std::make_unique<WorkItem>());
  ASSERT_TRUE(Eventually([&] { return begun.load(); }));
  pool.Drain();
  pool.Join();
  EXPECT_EQ(source_.held(), 0);
  EXPECT_EQ(source_.acquired(), 1);
}

TEST_F(WorkerPoolTest, AnItemOfALostLeaseIsDoneElsewhere) {
  AddWorker("a");
  std::atomic<bool> begun = false;
  std::atomic<int> done = 0;
  WorkerPool pool(
      Quick(1), source_,
      [&](WorkItemPtr item, const LeasedWorker& worker, std::stop_token, WorkerPool::Done end) {
        if (worker.worker().id() == "b") {
          ++done;
          return end({});
        }
        begun = true;
        // The call that goes on is cancelled by the loss.
        ASSERT_TRUE(Eventually([&] { return worker.lost(); }));
        end({.again = std::move(item)});
      });
  std::thread pusher([&] { pool.Push(std::make_unique<WorkItem>()); });
  ASSERT_TRUE(Eventually([&] { return begun.load(); }));
  source_.RemoveWorker("a");
  AddWorker("b");
  pusher.join();
  EXPECT_TRUE(Eventually([&] { return done == 1; }));
}

}  // namespace
}  // namespace kiln::scheduler
