#include "runner/pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

namespace kiln::runner {
namespace {

TEST(ForPieces, EachByteOnceByThreads) {
  for (const size_t bytes : {size_t{0}, size_t{1000}, size_t{64} << 20, (size_t{100} << 20) + 3}) {
    for (const int threads : {0, 1, 3}) {
      std::mutex mutex;
      std::set<std::pair<size_t, size_t>> pieces;
      ForPieces(bytes, threads, [&](size_t at, size_t count) {
        const std::scoped_lock lock(mutex);
        pieces.insert({at, count});
      });
      size_t end = 0;
      for (const auto& [at, count] : pieces) {
        EXPECT_EQ(at, end);
        end = at + count;
      }
      EXPECT_EQ(end, bytes);
      EXPECT_TRUE(threads != 1 || pieces.size() == 1u);
    }
  }
}

TEST(ForPieces, ThreadsWorkAtOnce) {
  std::atomic<int> there = 0;
  ForPieces(size_t{64} << 20, 4, [&](size_t, size_t) {
    ++there;
    while (there < 4) std::this_thread::yield();
  });
  EXPECT_EQ(there, 4);
}

TEST(UnsetBytesTest, KeepsWhatIsWritten) {
  UnsetBytes bytes(100);
  TouchPages(bytes);
  EXPECT_EQ(bytes.front(), std::byte{0});
  std::ranges::fill(bytes, std::byte{7});
  bytes.resize(5000);
  EXPECT_EQ(std::ranges::count(bytes, std::byte{7}) >= 100, true);
  EXPECT_EQ(UnsetBytes(3, std::byte{5}), (UnsetBytes{std::byte{5}, std::byte{5}, std::byte{5}}));
}

}  // namespace
}  // namespace kiln::runner
