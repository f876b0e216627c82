// Commits writes of several threads together: a commit lasts a sync of the disk, and costs several
// times what a record costs.
//
// A thread whose write finds no commit under way commits it, with all writes that wait by then.
// Writes that come meanwhile wait for the next commit. A lone writer never waits for others. After
// a commit of several writes the next one begins a pause after it at the earliest, because their
// threads are about to come again: the more they are, the longer it waits for them (PauseAfter).
//
// If one write of a group fails, each is done again in a transaction of its own, so that each
// thread gets the result of its own write.
//
// Thread-safe. Runs in the threads of its callers.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/status.h"
#include "store/sqlite.h"

namespace kiln::store {

class GroupCommit {
 public:
  // One thread's write. Its functions are called by any thread, one at a time, with the connection
  // locked. They may be called again after a transaction that failed.
  struct Write {
    // Reads the state before all writes of the group. May be null.
    std::function<Status()> prepare = nullptr;
    std::function<Status()> write;
    // Runs after the commit, before the connection is unlocked. May be null.
    std::function<void()> committed = nullptr;
  };

  // `mutex` guards the connection. Both outlive this object.
  GroupCommit(std::mutex& mutex, sqlite::Database& database) : mutex_(mutex), database_(database) {}

  // Returns once the write is on the disk, or has failed and changed nothing.
  Status Commit(const Write& write);

  // Returns the number of writes that wait for the next commit.
  size_t waiting() const;

  // Most writes of one commit.
  static constexpr size_t kMostWrites = 256;
  // Returns the time from the end of a commit of so many writes to the begin of the next one.
  static std::chrono::microseconds PauseAfter(size_t writes);

 private:
  // A write that waits, and the thread that waits for it.
  struct Member {
    explicit Member(const Write& of) : write(of) {}
    const Write& write;
    Status status;
    bool done = false;
    // Tells the thread that its write is done, or that it is to commit the next group. It needs no
    // lock, because all threads of a group go on at once.
    absl::Notification turn;
  };

  // Commits the next group, which begins with `self`, and passes the turn on. Takes `lock` of
  // queue_mutex_, and leaves it unlocked.
  void Lead(Member& self, std::unique_lock<std::mutex>& lock);
  // Takes the writes of the next commit. Lock held.
  std::vector<Member*> TakeGroup();
  void CommitGroup(const std::vector<Member*>& group);
  // Commits the writes of the members in one transaction, all or none.
  Status CommitTogether(const std::vector<Member*>& group);

  // Guards the connection.
  std::mutex& mutex_;
  sqlite::Database& database_;

  // Guards all that follows.
  mutable std::mutex queue_mutex_;
  std::deque<Member*> queue_;
  // True while a thread commits, or is about to: the first of the queue gets its turn from it.
  bool commits_ = false;
  std::chrono::steady_clock::time_point next_begin_;
};

}  // namespace kiln::store
