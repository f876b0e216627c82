#include "scheduler/values/helper_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace kiln::scheduler {
namespace {

// Each of the two waits for the other.
TEST(HelperThreadsTest, WorkRunsAtOnce) {
  std::latch both(2);
  HelperThreads threads;
  for (int i = 0; i < 2; ++i) threads.Run([&] { both.arrive_and_wait(); });
  threads.Join();
  EXPECT_TRUE(both.try_wait());
}

TEST(HelperThreadsTest, TheDestructorWaitsForWorkThatWorkHasBegun) {
  std::atomic<int> ended = 0;
  {
    HelperThreads threads;
    threads.Run([&] {
      threads.Run([&] { ++ended; });
      ++ended;
    });
  }
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace kiln::scheduler
