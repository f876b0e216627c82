// Threads that serve connections, one connection each.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/file/fd.h"

namespace kiln {

// Starts a thread when a connection comes and all threads are busy, up to a limit. Idle threads
// stay. Thread-safe; the owner alone calls Stop and the destructor.
class ConnectionPool {
 public:
  struct Options {
    size_t max_threads = 32;
    // Connections that wait for a thread. Beyond it, new ones are closed.
    size_t max_waiting = 64;
  };
  // Serves a connection until it is over. The socket belongs to the pool, which shuts it down
  // afterwards. SIGPIPE is blocked. It must end soon once the socket was shut down.
  using Serve = std::function<void(int socket)>;

  ConnectionPool(const Options& options, Serve serve);
  // Calls Stop.
  ~ConnectionPool();
  ConnectionPool(const ConnectionPool&) = delete;
  ConnectionPool& operator=(const ConnectionPool&) = delete;

  void Add(UniqueFd connection);

  // Returns whether connections wait for a thread.
  bool IsFull() const;

  // Shuts all connections down, and returns when no thread is left.
  void Stop();

 private:
  void Run();

  const Options options_;
  const Serve serve_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // All of these are guarded by mutex_.
  bool stopping_ = false;
  size_t idle_ = 0;
  std::deque<UniqueFd> waiting_;
  std::set<int> served_;
  std::vector<std::thread> threads_;
};

}  // namespace kiln
