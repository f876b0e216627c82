#include "search/tuning/search_thread.h"

#include "base/clock.h"
#include "base/process/freed_memory.h"

namespace kiln::search {

SearchThread::SearchThread(std::function<void()> done, ExclusivePhases* phases, SearchTurns* turns)
    : done_(std::move(done)), phases_(phases), turns_(turns), thread_([this] { Run(); }) {}

SearchThread::~SearchThread() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  stop_.request_stop();
  thread_.join();
}

void SearchThread::Start(Order order) {
  KILN_CHECK(!busy_, "an order at a time");
  busy_ = true;
  std::lock_guard lock(mutex_);
  order_ = std::move(order);
  changed_.notify_all();
}

std::optional<SearchThread::Answer> SearchThread::Take() {
  std::lock_guard lock(mutex_);
  if (answer_.has_value()) busy_ = false;
  return std::exchange(answer_, std::nullopt);
}

SearchThread::Answer SearchThread::Carry(Order& order) const {
  const double asked_s = Clock::Real().MonotonicSeconds();
  SearchTurns::Turn turn;
  if (turns_ != nullptr) {
    turn = turns_->Take(stop_.get_token());
    if (!turn) return {Cancelled("stopped"), {}, 0};
  }
  const double waited_s = Clock::Real().MonotonicSeconds() - asked_s;
  ExclusivePhases::Hold phase;
  if (phases_ != nullptr) {
    phase = phases_->Enter(ExclusivePhases::Kind::kWork, stop_.get_token());
    if (!phase) return {Cancelled("stopped"), {}, 0};
  }
  const double start_s = Clock::Real().MonotonicSeconds();
  for (auto& [told, observations] : order.events) {
    const std::lock_guard lock(told->mutex);
    told->policy->Observe(observations);
  }
  Answer answer{.candidates = std::vector<Candidate>(), .report = {}, .waited_s = waited_s};
  if (order.policy != nullptr) {
    const std::lock_guard lock(order.policy->mutex);
    Policy& policy = *order.policy->policy;
    policy.Suggest(order.suggestions);
    answer.candidates = policy.Propose(order.candidates);
    answer.report = policy.last_round();
  }
  answer.search_s = Clock::Real().MonotonicSeconds() - start_s;
  return answer;
}

void SearchThread::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || order_.has_value(); });
    if (stopping_) return;
    Order order = *std::exchange(order_, std::nullopt);
    lock.unlock();
    Answer answer = Carry(order);
    lock.lock();
    answer_ = std::move(answer);
    lock.unlock();
    done_();
    // The thread of each job rests most of the time where many jobs take turns.
    FlushThreadCache();
    lock.lock();
  }
}

}  // namespace kiln::search
