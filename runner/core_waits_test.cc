#include "runner/core_waits.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace kiln::runner {
namespace {

TEST(UseBetweenTest, TheLongestThreadCountsAndAllWaits) {
  const CoreCounts before = {{1, {1'000'000, 500}}, {2, {0, 0}}, {3, {7, 7}}};
  const CoreCounts after = {
      {1, {4'000'000, 2'000'500}}, {2, {9'000'000, 1'000'000}}, {4, {99, 99}}};
  const CoreUse use = UseBetween(before, after);
  EXPECT_DOUBLE_EQ(use.longest_s, 9e-3);
  EXPECT_DOUBLE_EQ(use.waited_s, 3e-3);
}

TEST(ReadCoreCountsTest, SaysNothingOfAProcessThatIsNotThere) {
  EXPECT_FALSE(ReadCoreCounts(1 << 30).has_value());
}

// Computes until the system has counted so much CPU time for this thread.
void ComputeFor(int64_t ns) {
  timespec used{};
  do {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  } while (used.tv_sec * 1'000'000'000 + used.tv_nsec < ns);
}

// Two threads want the same core, so that both wait for it.
TEST(ReadCoreCountsTest, CountsWhatThreadsComputeAndHowLongTheyWait) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  int core = 0;
  while (!CPU_ISSET(core, &allowed)) ++core;
  std::atomic<int> ready{0}, may_end{0}, done{0};
  const auto thread = [&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof(one), &one);
    ++ready;
    while (ready < 3) std::this_thread::yield();
    ComputeFor(60'000'000);
    ++done;
    while (may_end == 0) usleep(1000);
  };
  std::thread a(thread), b(thread);
  while (ready < 2) usleep(1000);
  const auto before = ReadCoreCounts(getpid());
  ++ready;
  while (done < 2) usleep(1000);
  const auto after = ReadCoreCounts(getpid());
  may_end = 1;
  a.join();
  b.join();
  if (!before.has_value()) GTEST_SKIP() << "this system keeps no counts";
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(after->size(), before->size());
  const CoreUse use = UseBetween(*before, *after);
  EXPECT_GT(use.longest_s, 30e-3);
  EXPECT_LT(use.longest_s, 70e-3);
  EXPECT_GT(use.waited_s, 20e-3);
  const auto own = ReadOwnCounts();
  ASSERT_TRUE(own.has_value());
  EXPECT_GT(own->computed_ns, 0);
}

}  // namespace
}  // namespace kiln::runner
