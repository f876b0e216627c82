#include "rpc/http/connection_pool.h"

#include <sys/socket.h>

#include <atomic>
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

TEST(ConnectionPoolTest, ThreadsAreUsedAgain) {
  std::atomic<int> served = 0;
  ConnectionPool pool({.max_threads = 3}, [&](int) { ++served; });
  for (int i = 1; i <= 200; ++i) {
    auto pair = *MakeSocketPair();
    pool.Add(std::move(pair.second));
    EXPECT_EQ(ReadByte(pair.first.get()), '\0');
    EXPECT_EQ(served, i);
  }
}

}  // namespace
}  // namespace kiln
