#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>

namespace kiln {
namespace {

TEST(ThreadPoolTest, RunsEverythingBeforeWaitReturns) {
  ThreadPool pool(4);
  EXPECT_EQ(pool.size(), 4);
  std::atomic<int> ran = 0;
  for (int round = 1; round <= 20; ++round) {
    for (int i = 0; i < 50; ++i) pool.Submit([&] { ++ran; });
    pool.Wait();
    EXPECT_EQ(ran, 50 * round);
  }
}

TEST(ThreadPoolTest, OneThreadKeepsTheOrder) {
  ThreadPool pool(1);
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) pool.Submit([&, i] { order.push_back(i); });
  pool.Wait();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(ThreadPoolTest, DestructorRunsWhatIsQueued) {
  std::atomic<int> ran = 0;
  {
    ThreadPool pool(2);
    for (int i = 0; i < 500; ++i) pool.Submit([&] { ++ran; });
  }
  EXPECT_EQ(ran, 500);
}

TEST(ThreadPoolTest, AFunctionMaySubmit) {
  ThreadPool pool(2);
  std::atomic<int> ran = 0;
  pool.Submit([&] {
    for (int i = 0; i < 10; ++i) pool.Submit([&] { ++ran; });
  });
  pool.Wait();
  EXPECT_EQ(ran, 10);
}

TEST(ThreadPoolTest, WhatAFunctionHoldsIsReleasedBeforeWaitReturns) {
  ThreadPool pool(1);
  auto held = std::make_shared<int>(1);
  pool.Submit([held] {});
  pool.Wait();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(ThreadPoolTest, ParallelForRunsEachIndexOnce) {
  ThreadPool pool(3);
  for (int64_t count : {0, 1, 2, 3, 100, 10'000}) {
    std::vector<std::atomic<int>> times(count);
    pool.ParallelFor(count, [&](int64_t i) { ++times[i]; });
    for (const auto& n : times) ASSERT_EQ(n, 1);
  }
}

TEST(ThreadPoolTest, ParallelForNestsInThePool) {
  ThreadPool pool(2);
  std::atomic<int> ran = 0;
  pool.ParallelFor(8, [&](int64_t) { pool.ParallelFor(8, [&](int64_t) { ++ran; }); });
  EXPECT_EQ(ran, 64);
}

TEST(ThreadPoolTest, ParallelForFromManyThreads) {
  ThreadPool pool(2);
  std::atomic<int> ran = 0;
  {
    std::vector<std::jthread> callers;
    for (int c = 0; c < 4; ++c) {
      callers.emplace_back([&] {
        for (int r = 0; r < 50; ++r) pool.ParallelFor(10, [&](int64_t) { ++ran; });
      });
    }
  }
  EXPECT_EQ(ran, 2000);
}

TEST(ThreadPoolTest, DefaultSizeIsTheNumberOfCpus) {
  EXPECT_GE(AvailableCpus(), 1);
  EXPECT_EQ(ThreadPool(0).size(), AvailableCpus());
}

}  // namespace
}  // namespace kiln
