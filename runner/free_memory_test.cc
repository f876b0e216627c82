#include "runner/free_memory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <limits>

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln::runner {
namespace {

class FreeMemoryTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    for (size_t slash = 1; (slash = path.find('/', slash)) != std::string::npos; ++slash) {
      mkdir(root_.Join(path.substr(0, slash)).c_str(), 0755);
    }
    ASSERT_OK(WriteFile(root_.Join(path), text));
  }
  int64_t Free() { return FreeMemoryBytes(root_.Join("")); }

  TempDir root_ = *TempDir::Make("free-memory-test");
};

TEST_F(FreeMemoryTest, WhatTheMachineHas) {
  EXPECT_EQ(Free(), std::numeric_limits<int64_t>::max());
  Write("proc/meminfo", "MemTotal:  100 kB\nMemFree: 7 kB\nMemAvailable:   2000 kB\n");
  EXPECT_EQ(Free(), 2000 * 1024);
}

TEST_F(FreeMemoryTest, WhatAContainerLeavesOfIt) {
  Write("proc/meminfo", "MemAvailable:   2000 kB\n");
  Write("sys/fs/cgroup/memory.max", "max\n");
  Write("sys/fs/cgroup/memory.current", "500000\n");
  EXPECT_EQ(Free(), 2000 * 1024);
  Write("sys/fs/cgroup/memory.max", "1000000\n");
  EXPECT_EQ(Free(), 500'000);
  Write("sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 200000\nactive_file 3\n");
  EXPECT_EQ(Free(), 700'000);
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "600000\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", "700000\n");
  EXPECT_EQ(Free(), 0);
}

TEST(FreeMemoryOfThisMachineTest, IsSomething) {
  EXPECT_GT(FreeMemoryBytes(), 1 << 20);
  EXPECT_LT(FreeMemoryBytes(), int64_t{1} << 50);
}

}  // namespace
}  // namespace kiln::runner
