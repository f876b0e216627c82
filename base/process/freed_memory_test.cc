#include "base/process/freed_memory.h"

#include <gtest/gtest.h>
#include <jemalloc/jemalloc.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace kiln {
namespace {

constexpr int64_t kMiB = 1 << 20;

int64_t ResidentMib() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGE_SIZE) / kMiB;
}

// Allocates as a search does: threads fill heaps with small things, keep a few of them, and drop
// the rest.
std::vector<std::unique_ptr<std::vector<char>>> FillAndDrop(int threads, int mib) {
  std::vector<std::vector<std::unique_ptr<std::vector<char>>>> kept(threads);
  {
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        std::vector<std::unique_ptr<std::vector<char>>> all;
        for (int i = 0; i < mib * 64; ++i)
          all.push_back(std::make_unique<std::vector<char>>(16 << 10, 'x'));
        // The last allocations hold the ends of the heaps.
        for (int i = 0; i < 3; ++i) {
          kept[t].push_back(std::move(all.back()));
          all.pop_back();
        }
      });
    }
  }
  std::vector<std::unique_ptr<std::vector<char>>> rest;
  for (auto& some : kept) {
    for (auto& one : some) rest.push_back(std::move(one));
  }
  return rest;
}

TEST(FreedMemoryTest, WhatIsFreedGoesBack) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have allocators of their own";
#endif
  const int64_t before = ResidentMib();
  const auto kept = FillAndDrop(/*threads=*/6, /*mib=*/40);
  GiveBackFreedMemory();
  EXPECT_LT(ResidentMib() - before, 40);
}

TEST(FreedMemoryTest, TheProgramAllocatesWithIt) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have allocators of their own";
#else
  void* volatile c = std::malloc(100);
  EXPECT_GE(sallocx(c, 0), 100u);
  std::free(c);
  const auto cxx = std::make_unique<std::string>(1000, 'x');
  EXPECT_GE(sallocx(cxx->data(), 0), 1000u);
#endif
}

// A process of many threads waits long for each change of its address space.
TEST(FreedMemoryTest, AddressesOfFreedMemoryAreRetained) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have allocators of their own";
#endif
  const int64_t before = RetainedBytes();
  void* volatile memory = std::malloc(64 * kMiB);
  std::free(memory);
  GiveBackFreedMemory();
  EXPECT_GE(RetainedBytes(), before + 60 * kMiB);
}

}  // namespace
}  // namespace kiln
