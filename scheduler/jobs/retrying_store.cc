#include "scheduler/jobs/retrying_store.h"

#include <utility>

#include "base/log.h"

namespace kiln::scheduler {
namespace {

bool MayPass(const Status& status) {
  return status.code() == StatusCode::kUnavailable ||
         status.code() == StatusCode::kResourceExhausted;
}

}  // namespace

RetryingStore::RetryingStore(store::Store& store, std::string name, std::stop_token stop,
                             std::chrono::milliseconds pause, TimePoint until)
    : StoreDecorator(store),
      name_(std::move(name)),
      stop_(std::move(stop)),
      pause_(pause),
      until_(until) {}

std::string RetryingStore::problem() const {
  std::lock_guard lock(mutex_);
  return problem_;
}

Status RetryingStore::Around(Access, const std::function<Status()>& call) {
  Status status = call();
  if (!MayPass(status)) return status;
  {
    std::lock_guard lock(mutex_);
    ++waiting_;
  }
  while (MayPass(status) && !stop_.stop_requested() && std::chrono::steady_clock::now() < until_) {
    NoteProblem(status);
    {
      std::unique_lock lock(mutex_);
      stopped_.wait_for(lock, stop_, pause_, [] { return false; });
    }
    if (!stop_.stop_requested()) status = call();
  }
  NoteEnd();
  if (!MayPass(status) || !stop_.stop_requested()) return status;
  return Cancelled("stopped while the database was away: {}", Message(status));
}

void RetryingStore::NoteProblem(const Status& status) {
  std::lock_guard lock(mutex_);
  if (problem_ == Message(status)) return;
  problem_ = Message(status);
  LogError("{} waits for the database: {}", name_, problem_);
}

void RetryingStore::NoteEnd() {
  std::lock_guard lock(mutex_);
  if (--waiting_ > 0 || problem_.empty()) return;
  problem_.clear();
  if (!stop_.stop_requested()) LogInfo("{} goes on: the database works again", name_);
}

}  // namespace kiln::scheduler
