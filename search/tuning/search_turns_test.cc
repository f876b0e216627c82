#include "search/tuning/search_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln::search {
namespace {

void AwaitWaiting(const SearchTurns& turns, int count) {
  while (turns.waiting() != count) std::this_thread::yield();
}

TEST(SearchTurnsTest, SoManyWorkAtOnceAndNoMore) {
  SearchTurns turns(2);
  std::atomic<int> at_work = 0, most = 0, done = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 50; ++round) {
          const SearchTurns::Turn turn = turns.Take();
          const int now = ++at_work;
          for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) continue;
          std::this_thread::yield();
          --at_work;
          ++done;
        }
      });
    }
  }
  EXPECT_EQ(done, 400);
  EXPECT_LE(most, 2);
  const SearchTurns::Turn one = turns.Take();
  const SearchTurns::Turn two = turns.Take();
  EXPECT_TRUE(one && two);
}

TEST(SearchTurnsTest, TheFirstToComeIsTheNext) {
  SearchTurns turns(1);
  std::mutex mutex;
  std::vector<int> order;
  SearchTurns::Turn first = turns.Take();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 5; ++i) {
      threads.emplace_back([&, i] {
        const SearchTurns::Turn turn = turns.Take();
        std::lock_guard lock(mutex);
        order.push_back(i);
      });
      AwaitWaiting(turns, i + 1);
    }
    first = {};
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(SearchTurnsTest, AStoppedSearchWaitsNoLonger) {
  SearchTurns turns(1);
  SearchTurns::Turn held = turns.Take();
  std::stop_source stop;
  std::atomic<bool> was_stopped = false, had_turn = false;
  {
    std::jthread stopped([&] { was_stopped = !turns.Take(stop.get_token()); });
    AwaitWaiting(turns, 1);
    std::jthread next([&] { had_turn = static_cast<bool>(turns.Take()); });
    AwaitWaiting(turns, 2);
    stop.request_stop();
    AwaitWaiting(turns, 1);
    held = {};
  }
  EXPECT_TRUE(was_stopped);
  EXPECT_TRUE(had_turn);
  EXPECT_FALSE(turns.Take(stop.get_token()));
  EXPECT_TRUE(turns.Take());
}

TEST(SearchTurnsTest, NoTurnIsLostWhenStopAndTurnMeet) {
  SearchTurns turns(1);
  for (int i = 0; i < 200; ++i) {
    SearchTurns::Turn held = turns.Take();
    std::stop_source stop;
    std::jthread other([&] { const SearchTurns::Turn turn = turns.Take(stop.get_token()); });
    AwaitWaiting(turns, 1);
    std::jthread stopper([&] { stop.request_stop(); });
    held = {};
  }
  EXPECT_EQ(turns.waiting(), 0);
  EXPECT_TRUE(turns.Take());
}

}  // namespace
}  // namespace kiln::search
