#include "rpc/http/connection_pool.h"

#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/status_testing.h"

namespace kiln {
namespace {

// Returns what the other end reads: the byte that the pool has sent, or 0 at the end.
char ReadByte(int socket) {
  char byte = 0;
  return recv(socket, &byte, 1, 0) == 1 ? byte : '\0';
}

// Sends a byte and waits for the other end to close.
void SendAndWait(int socket) {
  char byte = 'x';
  send(socket, &byte, 1, MSG_NOSIGNAL);
  recv(socket, &byte, 1, 0);
}

TEST(ConnectionPoolTest, ServesAsManyAtOnceAsThereAreThreads) {
  ConnectionPool pool({.max_threads = 2, .max_waiting = 2}, SendAndWait);
  std::vector<UniqueFd> ends;
  for (int i = 0; i < 2; ++i) {
    auto pair = *MakeSocketPair();
    ends.push_back(std::move(pair.first));
    pool.Add(std::move(pair.second));
    EXPECT_EQ(ReadByte(ends.back().get()), 'x');
  }
  EXPECT_FALSE(pool.IsFull());
  for (int i = 0; i < 2; ++i) {
    auto pair = *MakeSocketPair();
    ends.push_back(std::move(pair.first));
    pool.Add(std::move(pair.second));
  }
  EXPECT_TRUE(pool.IsFull());
  // There is no room for a fifth one.
  auto fifth = *MakeSocketPair();
  pool.Add(std::move(fifth.second));
  EXPECT_EQ(ReadByte(fifth.first.get()), '\0');
  // The third one gets the thread of the first.
  ends[0].Reset();
  EXPECT_EQ(ReadByte(ends[2].get()), 'x');
}

TEST(ConnectionPoolTest, StopEndsAllConnections) {
  ConnectionPool pool({.max_threads = 1, .max_waiting = 2}, SendAndWait);
  auto served = *MakeSocketPair(), waiting = *MakeSocketPair(), late = *MakeSocketPair();
  pool.Add(std::move(served.second));
  EXPECT_EQ(ReadByte(served.first.get()), 'x');
  pool.Add(std::move(waiting.second));
  pool.Stop();
  EXPECT_EQ(ReadByte(served.first.get()), '\0');
  EXPECT_EQ(ReadByte(waiting.first.get()), '\0');
  pool.Add(std::move(late.second));
  EXPECT_EQ(ReadByte(late.first.get()), '\0');
  pool.Stop();
}

TEST(ConnectionPoolTest, AThreadThatIsIdleServesTheNextConnection) {
  std::mutex mutex;
  std::vector<std::thread::id> served;
  ConnectionPool pool({.max_threads = 3}, [&](int) {
    const std::lock_guard lock(mutex);
    served.push_back(std::this_thread::get_id());
  });
  for (size_t i = 1; i <= 200; ++i) {
    auto pair = *MakeSocketPair();
    pool.Add(std::move(pair.second));
    EXPECT_EQ(ReadByte(pair.first.get()), '\0');
    const std::lock_guard lock(mutex);
    ASSERT_EQ(served.size(), i);
    EXPECT_EQ(served.back(), served.front());
  }
}

// Returns how many of the connections were served. Each of them ends.
int AddMany(ConnectionPool& pool, int count) {
  int served = 0;
  for (int i = 0; i < count; ++i) {
    auto pair = *MakeSocketPair();
    pool.Add(std::move(pair.second));
    pool.IsFull();
    served += ReadByte(pair.first.get()) == 'x' ? 1 : 0;
  }
  return served;
}

TEST(ConnectionPoolTest, ThreadsAddWhileThePoolStops) {
  constexpr int kCallers = 4, kRounds = 20, kConnections = 10;
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> at_once = 0, most = 0, begun = 0, told = 0;
    ConnectionPool pool({.max_threads = 2, .max_waiting = kCallers}, [&](int socket) {
      const int now = ++at_once;
      for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
      ++begun;
      const char byte = 'x';
      send(socket, &byte, 1, MSG_NOSIGNAL);
      --at_once;
    });
    std::vector<std::thread> callers;
    for (int i = 0; i < kCallers; ++i) {
      callers.emplace_back([&] { told += AddMany(pool, kConnections); });
    }
    // Every second pool stops at once, the others after each connection was served.
    if (round % 2 == 0) pool.Stop();
    for (std::thread& caller : callers) caller.join();
    pool.Stop();
    EXPECT_LE(most, 2);
    EXPECT_EQ(at_once, 0);
    // A connection that Stop shuts down may lose its byte.
    EXPECT_LE(told, begun);
    if (round % 2 == 1) {
      EXPECT_EQ(told, kCallers * kConnections);
    }
  }
}

}  // namespace
}  // namespace kiln
