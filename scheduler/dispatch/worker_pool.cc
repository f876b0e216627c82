#include "scheduler/dispatch/worker_pool.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace kiln::scheduler {
namespace {

// Time until a source that refused is asked again.
constexpr std::chrono::milliseconds kAskAgain{500};

// Time for which a new lease waits for an item if other lanes have taken the items that it was
// asked for: another scheduler may have items and no worker.
constexpr std::chrono::milliseconds kFirstWait{100};

bool Avoids(const WorkItem& item, const std::string& worker) {
  return item.avoid_worker == worker ||
         std::ranges::find(item.last_choices, worker) != item.last_choices.end();
}

}  // namespace

WorkerPool::WorkerPool(Options options, LeaseSource& source, Work work,
                       std::function<std::string(const v1::WorkerState&)> accept,
                       std::optional<LeasedWorker> first, Meanwhile meanwhile)
    : options_(std::move(options)),
      source_(source),
      work_(std::move(work)),
      accept_(std::move(accept)),
      meanwhile_(std::move(meanwhile)) {
  for (int i = 0; i < options_.lanes; ++i) {
    lanes_.emplace_back([this, lease = std::exchange(first, std::nullopt)]() mutable {
      RunLane(std::exchange(lease, std::nullopt));
    });
  }
}

WorkerPool::~WorkerPool() {
  Stop();
  Join();
}

void WorkerPool::Push(WorkItemPtr item) {
  std::lock_guard lock(mutex_);
  queue_.push_back(std::move(item));
  Notify();
}

void WorkerPool::PushFirst(WorkItemPtr item) {
  std::lock_guard lock(mutex_);
  queue_.push_front(std::move(item));
  Notify();
}

void WorkerPool::Poke() {
  if (meanwhile_ == nullptr) return;
  std::lock_guard lock(mutex_);
  CallToMeanwhile();
}

void WorkerPool::Stop() {
  Drain();
  stop_items_.request_stop();
}

void WorkerPool::Drain() {
  stop_.request_stop();
  std::lock_guard lock(mutex_);
  NotifyAll();
}

// There are many lanes. Each that woke up in vain would cost two switches of threads.
void WorkerPool::Notify() {
  if (options_.ahead) changed_.notify_all();
  CallIdleLanes();
  if (NeedsLease()) rested_.notify_one();
}

void WorkerPool::NotifyAll() {
  changed_.notify_all();
  rested_.notify_all();
  while (!idle_lanes_.empty()) Call(idle_lanes_.begin());
}

void WorkerPool::CallIdleLanes() {
  while (called_ < queue_.size()) {
    const auto lane = std::ranges::find_if(idle_lanes_, [this](const IdleLane* idle) {
      return FindTakeable(idle->worker) != queue_.end();
    });
    if (lane == idle_lanes_.end()) return;
    Call(lane);
  }
}

void WorkerPool::CallToMeanwhile() {
  ++events_;
  if (options_.ahead) changed_.notify_all();
  while (!idle_lanes_.empty()) Call(idle_lanes_.begin());
}

void WorkerPool::Call(std::list<IdleLane*>::iterator lane) {
  (*lane)->is_called = true;
  (*lane)->called.notify_one();
  idle_lanes_.erase(lane);
  ++called_;
}

bool WorkerPool::WaitIdle(std::unique_lock<std::mutex>& lock, const std::string& worker,
                          Clock::time_point until, const std::function<bool()>& done) {
  IdleLane lane{.worker = worker};
  ++seeking_;
  ++idle_;
  bool in_time = true;
  while (in_time && !done()) {
    idle_lanes_.push_front(&lane);
    lane.is_called = false;
    in_time = lane.called.wait_until(lock, until, [&] { return lane.is_called; });
    if (lane.is_called) {
      --called_;
    } else {
      std::erase(idle_lanes_, &lane);
    }
  }
  --seeking_;
  --idle_;
  return in_time || done();
}

void WorkerPool::Join() {
  for (std::thread& lane : lanes_) {
    if (lane.joinable()) lane.join();
  }
}

size_t WorkerPool::queued() const {
  std::lock_guard lock(mutex_);
  return queue_.size();
}

int WorkerPool::usable() const {
  std::lock_guard lock(mutex_);
  int sum = 0;
  for (const auto& [worker, lanes] : usable_) sum += lanes;
  return sum;
}

bool WorkerPool::HasOther(const std::string& worker) const {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(usable_, [&](const auto& lanes) { return lanes.first != worker; });
}

std::optional<std::string> WorkerPool::BlockedReason() const {
  std::lock_guard lock(mutex_);
  if (queue_.empty() || !usable_.empty()) return std::nullopt;
  return problem_;
}

// ---- lanes ----------------------------------------------------------------------------------

void WorkerPool::RunLane(std::optional<LeasedWorker> lease) {
  // The items for a lease that the pool was given are still to come.
  bool waits = lease.has_value();
  while (true) {
    if (!lease.has_value()) {
      if (!WaitForWork()) return;
      lease = AcquireLease();
      if (!lease.has_value()) continue;
    }
    Serve(*lease, std::exchange(waits, false));
    lease.reset();
    if (stop_.stop_requested()) return;
  }
}

bool WorkerPool::WaitForWork() {
  std::unique_lock lock(mutex_);
  ++resting_;
  rested_.wait(lock, [this] { return stop_.stop_requested() || NeedsLease(); });
  --resting_;
  if (stop_.stop_requested()) return false;
  ++seeking_;
  // Lanes may send items ahead now, and another resting lane may have to seek as well.
  Notify();
  return true;
}

std::optional<LeasedWorker> WorkerPool::AcquireLease() {
  std::unique_lock lock(mutex_);
  Clock::time_point until = Clock::time_point::max();
  const std::vector<std::string> avoid = BackedOffWorkers(&until);
  lock.unlock();
  const absl::Duration patience =
      avoid.empty() ? absl::InfiniteDuration() : absl::FromChrono(until - Clock::now());
  StatusOr<LeasedWorker> lease = source_.Acquire(patience, stop_.get_token(), avoid);
  lock.lock();
  --seeking_;
  Notify();
  if (lease.ok()) return *std::move(lease);
  if (stop_.stop_requested()) return std::nullopt;
  if (lease.status().code() != StatusCode::kDeadlineExceeded) {
    problem_ = Message(lease.status());
    changed_.wait_for(lock, kAskAgain, [this] { return stop_.stop_requested(); });
  }
  return std::nullopt;
}

void WorkerPool::Serve(const LeasedWorker& lease, bool waits) {
  const std::stop_callback on_lost(lease.lost_token(), [this] {
    std::lock_guard lock(mutex_);
    NotifyAll();
  });
  const std::string& worker = lease.worker().id();
  if (accept_ != nullptr) {
    const std::string refusal = accept_(lease.worker());
    if (!refusal.empty()) {
      LogWarn("{} {} at {} is not used: {}", options_.name, worker, lease.worker().address(),
              refusal);
      Settle(lease, {.again = nullptr, .complaint = refusal});
    }
  }
  Serving serving{.waits = waits};
  std::thread ahead;
  if (options_.ahead) ahead = std::thread([&] { ServeAhead(lease, serving); });
  ServeInTurn(lease, serving);
  if (!ahead.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    serving.over = true;
    changed_.notify_all();
  }
  ahead.join();
}

bool WorkerPool::MayGoAhead(const std::string& worker) {
  return idle_ == 0 && (seeking_ > 0 || resting_ == 0) && usable_.contains(worker) &&
         !IsBackedOff(worker) && FindTakeable(worker, /*ahead=*/true) != queue_.end();
}

void WorkerPool::ServeAhead(const LeasedWorker& lease, Serving& serving) {
  const std::string& worker = lease.worker().id();
  std::unique_lock lock(mutex_);
  const auto ends = [&] { return serving.over || stop_.stop_requested() || lease.lost(); };
  while (true) {
    changed_.wait(lock, [&] { return ends() || (!lease.wanted() && MayGoAhead(worker)); });
    if (ends()) return;
    const auto found = FindTakeable(worker, /*ahead=*/true);
    WorkItemPtr item = std::move(*found);
    queue_.erase(found);
    serving.ahead_works = true;
    lock.unlock();
    Attempt attempt = work_(std::move(item), lease, stop_items_.get_token());
    lock.lock();
    serving.ahead_works = false;
    lock.unlock();
    Settle(lease, std::move(attempt));
    lock.lock();
  }
}

void WorkerPool::ServeInTurn(const LeasedWorker& lease, Serving& serving) {
  const std::string& worker = lease.worker().id();
  std::unique_lock lock(mutex_);
  while (!stop_.stop_requested() && !lease.lost() && !lease.wanted()) {
    if (IsBackedOff(worker)) return;
    ++usable_[worker];
    WorkItemPtr item = Take(lock, lease, serving);
    Attempt attempt;
    const bool idle = item == nullptr;
    if (!idle) {
      lock.unlock();
      attempt = work_(std::move(item), lease, stop_items_.get_token());
      lock.lock();
      serving.waits = true;
    }
    if (--usable_[worker] == 0) usable_.erase(worker);
    if (idle) {
      Notify();  // others may take the items that were left to this lane
      return;
    }
    lock.unlock();
    Settle(lease, std::move(attempt));
    lock.lock();
  }
}

std::vector<std::string> WorkerPool::BackedOffWorkers(Clock::time_point* until) const {
  std::vector<std::string> workers;
  const auto now = Clock::now();
  for (const auto& [worker, trouble] : trouble_) {
    if (trouble.until <= now) continue;
    workers.push_back(worker);
    *until = std::min(*until, trouble.until);
  }
  return workers;
}

// Items that avoid the worker are left to lanes on others, if there are any that take them.
std::deque<WorkItemPtr>::iterator WorkerPool::FindTakeable(const std::string& worker, bool ahead) {
  return std::ranges::find_if(queue_, [&](const WorkItemPtr& item) {
    if (ahead && item->in_turn) return false;
    return !Avoids(*item, worker) || std::ranges::all_of(usable_, [&](const auto& lanes) {
      return lanes.first == worker || Avoids(*item, lanes.first);
    });
  });
}

bool WorkerPool::IsBackedOff(const std::string& worker) const {
  const auto it = trouble_.find(worker);
  return it != trouble_.end() && it->second.until > Clock::now();
}

// Returns null if the lease has to be let go.
WorkItemPtr WorkerPool::Take(std::unique_lock<std::mutex>& lock, const LeasedWorker& lease,
                             const Serving& serving) {
  const std::string& worker = lease.worker().id();
  const auto over = [&] { return stop_.stop_requested() || lease.lost() || IsBackedOff(worker); };
  const auto found = [&] { return FindTakeable(worker) != queue_.end(); };
  const auto first_wait = std::min(kFirstWait, options_.idle_release);
  auto until = Clock::now() + (serving.waits ? options_.idle_release : first_wait);
  while (!over() && !found()) {
    const uint64_t seen = events_;
    if (meanwhile_ != nullptr && !serving.ahead_works && !lease.wanted()) {
      lock.unlock();
      std::optional<Attempt> attempt = meanwhile_(lease, stop_.get_token());
      const bool did = attempt.has_value();
      if (did) Settle(lease, *std::move(attempt));
      lock.lock();
      if (did && lease.wanted() && !found()) return nullptr;
      if (did) until = Clock::now() + options_.idle_release;
      if (did) continue;
    }
    const auto more = [&] {
      return meanwhile_ != nullptr && events_ != seen && !serving.ahead_works && !lease.wanted();
    };
    const auto done = [&] { return over() || found() || more(); };
    if (!WaitIdle(lock, worker, until, done)) return nullptr;
  }
  if (over()) return nullptr;
  const auto taken = FindTakeable(worker);
  WorkItemPtr item = std::move(*taken);
  queue_.erase(taken);
  return item;
}

void WorkerPool::LeaveAlone(const LeasedWorker& lease, std::chrono::milliseconds pause,
                            std::string_view reason) {
  if (stop_.stop_requested()) return;
  const v1::WorkerState& worker = lease.worker();
  trouble_[worker.id()].until = Clock::now() + pause;
  problem_ = fmt::format("{} {} at {}: {}", options_.name, worker.id(), worker.address(), reason);
  LogWarn("{}; left alone for {} ms", problem_, pause.count());
}

void WorkerPool::Settle(const LeasedWorker& lease, Attempt attempt) {
  const std::string& worker = lease.worker().id();
  std::lock_guard lock(mutex_);
  if (!attempt.complaint.empty()) {
    const int doublings = std::min(trouble_[worker].failures++, 20);
    const auto pause =
        std::min(options_.longest_backoff, options_.first_backoff * (int64_t{1} << doublings));
    LeaveAlone(lease, pause, attempt.complaint);
  } else if (!attempt.rest.empty()) {
    LeaveAlone(lease, options_.first_backoff, attempt.rest);
  } else {
    trouble_.erase(worker);
    problem_.clear();
  }
  if (attempt.again != nullptr) {
    attempt.again->avoid_worker = worker;
    queue_.push_front(std::move(attempt.again));
  }
  if (meanwhile_ != nullptr) CallToMeanwhile();
  Notify();
}

}  // namespace kiln::scheduler
