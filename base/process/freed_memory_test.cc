#include "base/process/freed_memory.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
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
  KeepFreedMemory();
  const int64_t before = ResidentMib();
  const auto kept = FillAndDrop(/*threads=*/6, /*mib=*/40);
  EXPECT_GT(ResidentMib() - before, 150) << "the heaps keep it";
  GiveBackFreedMemory(kFreedBytesToKeep * 4);
  EXPECT_GT(ResidentMib() - before, 150) << "it is less than is to be kept";
  GiveBackFreedMemory();
  EXPECT_LT(ResidentMib() - before, 40);
}

// Threads that allocate at the same time, more of them than there may be heaps.
TEST(FreedMemoryTest, HeapsForEachCoreAreLimited) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have allocators of their own";
#endif
  KeepFreedMemory();
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned count = 2 * kHeapsPerCore * cores + 4;
  std::barrier all(static_cast<std::ptrdiff_t>(count));
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < count; ++t) {
      threads.emplace_back([&] {
        const auto some = std::make_unique<std::vector<char>>(1000, 'x');
        all.arrive_and_wait();
      });
    }
  }
  char* text = nullptr;
  size_t size = 0;
  std::FILE* const stream = open_memstream(&text, &size);
  ASSERT_NE(stream, nullptr);
  malloc_info(0, stream);
  std::fclose(stream);
  const std::string report(text, size);
  std::free(text);
  unsigned heaps = 0;
  for (size_t at = 0; (at = report.find("<heap nr=", at)) != std::string::npos; ++at) ++heaps;
  EXPECT_GE(heaps, 1u);
  EXPECT_LE(heaps, kHeapsPerCore * cores);
}

}  // namespace
}  // namespace kiln
