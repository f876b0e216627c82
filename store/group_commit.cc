#include "store/group_commit.h"

#include <algorithm>
#include <cstdint>
#include <thread>

namespace kiln::store {
namespace {

constexpr std::chrono::microseconds kNoPause{0}, kShortestPause{4'000}, kLongestPause{12'000};
constexpr std::chrono::microseconds kPauseForWrite{300};

}  // namespace

Status GroupCommit::Commit(const Write& write) {
  Member self(write);
  std::unique_lock lock(queue_mutex_);
  queue_.push_back(&self);
  if (commits_) {
    lock.unlock();
    self.turn.WaitForNotification();
    if (self.done) return self.status;
    lock.lock();
  }
  commits_ = true;
  Lead(self, lock);
  return self.status;
}

void GroupCommit::Lead(Member& self, std::unique_lock<std::mutex>& lock) {
  if (const auto begin = next_begin_; std::chrono::steady_clock::now() < begin) {
    lock.unlock();
    std::this_thread::sleep_until(begin);
    lock.lock();
  }
  const std::vector<Member*> group = TakeGroup();
  lock.unlock();
  CommitGroup(group);
  lock.lock();
  next_begin_ = std::chrono::steady_clock::now() + PauseAfter(group.size());
  commits_ = !queue_.empty();
  Member* const next = commits_ ? queue_.front() : nullptr;
  lock.unlock();
  if (next != nullptr) next->turn.Notify();
  for (Member* const member : group) {
    if (member == &self) continue;
    member->done = true;
    member->turn.Notify();
  }
}

std::chrono::microseconds GroupCommit::PauseAfter(size_t writes) {
  if (writes <= 1) return kNoPause;
  return std::clamp(static_cast<int64_t>(writes) * kPauseForWrite, kShortestPause, kLongestPause);
}

size_t GroupCommit::waiting() const {
  std::lock_guard lock(queue_mutex_);
  return queue_.size();
}

std::vector<GroupCommit::Member*> GroupCommit::TakeGroup() {
  const auto end =
      queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), kMostWrites));
  std::vector<Member*> group(queue_.begin(), end);
  queue_.erase(queue_.begin(), end);
  return group;
}

void GroupCommit::CommitGroup(const std::vector<Member*>& group) {
  std::lock_guard lock(mutex_);
  const Status together = CommitTogether(group);
  if (together.ok() || group.size() == 1) {
    for (Member* const member : group) member->status = together;
    return;
  }
  for (Member* const member : group) member->status = CommitTogether({member});
}

Status GroupCommit::CommitTogether(const std::vector<Member*>& group) {
  KILN_ASSIGN_OR_RETURN(sqlite::Transaction transaction, sqlite::Transaction::Begin(database_));
  for (Member* const member : group) {
    if (member->write.prepare != nullptr) KILN_RETURN_IF_ERROR(member->write.prepare());
  }
  for (Member* const member : group) KILN_RETURN_IF_ERROR(member->write.write());
  KILN_RETURN_IF_ERROR(transaction.Commit());
  for (Member* const member : group) {
    if (member->write.committed != nullptr) member->write.committed();
  }
  return OkStatus();
}

}  // namespace kiln::store
