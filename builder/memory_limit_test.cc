#include "builder/memory_limit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace kiln::builder {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Returns whether so much memory can be allocated. It is written to, so that the compiler cannot
// leave the allocation out.
bool CanGet(size_t bytes) {
  void* volatile memory = std::malloc(bytes);
  const bool got = memory != nullptr;
  if (got) std::memset(memory, 1, bytes);
  std::free(memory);
  return got;
}

TEST(MemoryLimitTest, HoldsWhileItLives) {
  if (!MemoryLimit::Works()) GTEST_SKIP() << "sanitizer build";
  {
    const MemoryLimit limit(OwnMemoryBytes() + 100 * kMiB);
    EXPECT_TRUE(CanGet(50 * kMiB));
    EXPECT_FALSE(CanGet(150 * kMiB));
  }
  EXPECT_TRUE(CanGet(150 * kMiB));
  {
    const MemoryLimit limit(OwnMemoryBytes() + 200 * kMiB);
    EXPECT_TRUE(CanGet(150 * kMiB));
  }
}

TEST(MemoryLimitTest, OwnMemoryFollowsTheHeap) {
  const int64_t before = OwnMemoryBytes();
  ASSERT_GT(before, 0);
  void* volatile memory = std::malloc(64 * kMiB);
  EXPECT_GE(OwnMemoryBytes(), before + 64 * kMiB);
  std::free(memory);
  if (!MemoryLimit::Works()) return;
  EXPECT_LT(OwnMemoryBytes(), before + 32 * kMiB);
}

TEST(MemoryLimitDeathTest, FailedNewNamesTheCause) {
  if (!MemoryLimit::Works()) GTEST_SKIP() << "sanitizer build";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        ReportOutOfMemory();
        const MemoryLimit limit(OwnMemoryBytes() + 10 * kMiB);
        const std::unique_ptr<char[]> memory(new char[100 * kMiB]);
        std::memset(memory.get(), 1, 100 * kMiB);
      },
      testing::KilledBySignal(SIGABRT), "out of memory: the build's memory limit");
}

}  // namespace
}  // namespace kiln::builder
