#include "scheduler/dispatch/worker_pool.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/process/freed_memory.h"

namespace kiln::scheduler {
namespace {

// Time until a source that refused is asked again.
constexpr std::chrono::milliseconds kAskAgain{500};
// Time for which a new lease waits for an item if the items that it was asked for were done on
// other workers: another scheduler may have items and no worker.
constexpr std::chrono::milliseconds kFirstWait{100};
constexpr std::chrono::hours kForEver{24 * 365};

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
  // The items for a lease that the pool was given are still to come.
  if (first.has_value()) Take(*std::move(first), options_.idle_release);
  threads_.emplace_back([this] { WatchTime(); });
  const int asking = std::min(options_.most_leases, options_.most_asking);
  for (int i = 0; i < asking; ++i) threads_.emplace_back([this] { Ask(); });
}

WorkerPool::~WorkerPool() {
  Stop();
  Join();
}

void WorkerPool::Push(WorkItemPtr item) {
  item->queued_at = Clock::now();
  Lock lock(mutex_);
  queue_.push_back(std::move(item));
  Proceed(lock);
}

void WorkerPool::PushFirst(WorkItemPtr item) {
  item->queued_at = Clock::now();
  Lock lock(mutex_);
  queue_.push_front(std::move(item));
  Proceed(lock);
}

void WorkerPool::Poke() {
  if (meanwhile_ == nullptr) return;
  Lock lock(mutex_);
  ++events_;
  Proceed(lock);
}

void WorkerPool::Stop() {
  Drain();
  stop_items_.request_stop();
}

void WorkerPool::Drain() {
  stop_.request_stop();
  std::lock_guard lock(mutex_);
  asked_.notify_all();
  refused_.notify_all();
  timed_.notify_all();
}

void WorkerPool::Join() {
  {
    Lock lock(mutex_);
    ended_.wait(lock, [this] { return in_hand_ == 0; });
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  helpers_.Join();
  Lock lock(mutex_);
  // A lease that became idle last was not looked at any more.
  while (!idle_.empty()) LetGo(PlacePtr(idle_.front()));
  Proceed(lock);
}

size_t WorkerPool::queued() const {
  std::lock_guard lock(mutex_);
  return queue_.size();
}

uint64_t WorkerPool::looks() const {
  std::lock_guard lock(mutex_);
  return looks_;
}

int WorkerPool::usable() const {
  std::lock_guard lock(mutex_);
  return usable_places_;
}

bool WorkerPool::HasOther(const std::string& worker) const {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(usable_, [&](const auto& places) { return places.first != worker; });
}

std::optional<std::string> WorkerPool::BlockedReason() const {
  std::lock_guard lock(mutex_);
  if (queue_.empty() || !usable_.empty()) return std::nullopt;
  return problem_;
}

// ---- leases ---------------------------------------------------------------------------------

bool WorkerPool::MayNeedLease() const {
  const bool can_ask = asking_ < options_.most_asking && MayAsk();
  return can_ask && queue_.size() > static_cast<size_t>(asking_) + idle_.size();
}

bool WorkerPool::NeedsLease() const {
  if (!MayNeedLease()) return false;
  return places_.empty() || Clock::now() - queue_.front()->queued_at >= options_.ask_after;
}

void WorkerPool::Ask() {
  Lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [this] { return stop_.stop_requested() || NeedsLease(); });
    if (stop_.stop_requested()) return;
    ++asking_;
    Clock::time_point until = Clock::time_point::max();
    const std::vector<std::string> avoid = BackedOffWorkers(&until);
    Proceed(lock);  // items may go ahead now, and another thread may have to ask as well
    lock.unlock();
    const absl::Duration patience =
        avoid.empty() ? absl::InfiniteDuration() : absl::FromChrono(until - Clock::now());
    StatusOr<LeasedWorker> lease = source_.Acquire(patience, stop_.get_token(), avoid);
    const Status status = lease.status();
    if (lease.ok()) Take(*std::move(lease), std::min(kFirstWait, options_.idle_release));
    // A job has many such threads, and they rest most of the time.
    FlushThreadCache();
    lock.lock();
    --asking_;
    Proceed(lock);
    if (status.ok() || stop_.stop_requested()) continue;
    if (status.code() == StatusCode::kDeadlineExceeded) continue;
    problem_ = Message(status);
    refused_.wait_for(lock, kAskAgain, [this] { return stop_.stop_requested(); });
  }
}

void WorkerPool::Take(LeasedWorker lease, std::chrono::milliseconds patience) {
  const auto place = std::make_shared<Place>(std::move(lease));
  const v1::WorkerState& worker = place->lease.worker();
  const std::string refusal = accept_ == nullptr ? "" : accept_(worker);
  if (refusal.empty()) {
    place->on_lost.emplace(place->lease.lost_token(), [this] {
      std::lock_guard lock(mutex_);
      LookAt(Clock::now());
    });
  } else {
    LogWarn("{} {} at {} is not used: {}", options_.name, place->id(), worker.address(), refusal);
  }
  Lock lock(mutex_);
  if (!refusal.empty()) Settle(place->lease, {.again = nullptr, .complaint = refusal});
  if (refusal.empty() && !IsOver(*place)) {
    places_.push_back(place);
    place->idle_until = Clock::now() + patience;
    place->seen_events = events_ - 1;
    Rest(place);
  }
  Proceed(lock);
}

bool WorkerPool::IsOver(const Place& place) const {
  return stop_.stop_requested() || place.lease.lost() || place.lease.wanted() ||
         IsBackedOff(place.id());
}

void WorkerPool::LetGo(const PlacePtr& place) {
  Uncount(*place);
  let_go_.push_back(place);
  if (std::exchange(place->is_idle, false)) idle_.remove(let_go_.back());
  places_.remove(let_go_.back());
}

void WorkerPool::Count(Place& place) {
  if (std::exchange(place.is_counted, true)) return;
  ++usable_[place.id()];
  ++usable_places_;
}

void WorkerPool::Uncount(Place& place) {
  if (!std::exchange(place.is_counted, false)) return;
  --usable_places_;
  if (--usable_[place.id()] == 0) usable_.erase(place.id());
}

void WorkerPool::WatchTime() {
  Lock lock(mutex_);
  while (true) {
    LetIdleGo();
    Proceed(lock);
    if (stop_.stop_requested()) return;
    const Clock::time_point until = next_look_;
    timed_.wait_until(lock, until, [&] { return stop_.stop_requested() || next_look_ < until; });
  }
}

// A lease that others want stays until it is idle for long enough: there may be an item at once.
void WorkerPool::LetIdleGo() {
  const auto now = Clock::now();
  ++looks_;
  // A lease whose item ends before that is due later, so most ends of items need no look.
  next_look_ = now + (places_.empty() ? Clock::duration(kForEver) : options_.idle_release);
  std::vector<PlacePtr> over;
  for (const PlacePtr& place : idle_) {
    if (place->ahead_works) continue;  // it is looked at when that ends
    if (stop_.stop_requested() || place->lease.lost() || IsBackedOff(place->id()) ||
        now >= place->idle_until) {
      over.push_back(place);
    } else {
      next_look_ = std::min(next_look_, place->idle_until);
    }
  }
  for (const PlacePtr& place : over) LetGo(place);
}

void WorkerPool::LookAt(Clock::time_point time) {
  if (time >= next_look_) return;
  next_look_ = time;
  timed_.notify_all();
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

bool WorkerPool::IsBackedOff(const std::string& worker) const {
  const auto it = trouble_.find(worker);
  return it != trouble_.end() && it->second.until > Clock::now();
}

// ---- work -----------------------------------------------------------------------------------

// Items that avoid the worker are left to others, if there are any that take them.
std::deque<WorkItemPtr>::iterator WorkerPool::FindTakeable(const std::string& worker, bool ahead) {
  return std::ranges::find_if(queue_, [&](const WorkItemPtr& item) {
    if (ahead && item->in_turn) return false;
    return !Avoids(*item, worker) || std::ranges::all_of(usable_, [&](const auto& places) {
      return places.first == worker || Avoids(*item, places.first);
    });
  });
}

std::vector<WorkerPool::Start> WorkerPool::Starts() {
  std::vector<Start> starts;
  if (stop_.stop_requested()) return starts;
  for (auto it = idle_.begin(); it != idle_.end();) {
    const PlacePtr place = *it;
    const auto item = queue_.empty() ? queue_.end() : FindTakeable(place->id());
    const bool has_item = item != queue_.end();
    const bool looks = meanwhile_ != nullptr && place->seen_events != events_ &&
                       !place->ahead_works && !place->lease.wanted();
    if (place->lease.lost() || IsBackedOff(place->id()) || (!has_item && !looks)) {
      if (queue_.empty() && meanwhile_ == nullptr) break;
      ++it;
      continue;
    }
    it = idle_.erase(it);
    place->is_idle = false;
    place->works = true;
    place->seen_events = events_;
    Start start{place, Hand::kFirst, nullptr};
    if (has_item) {
      start.item = std::move(*item);
      queue_.erase(item);
    }
    starts.push_back(std::move(start));
  }
  AddStartsAhead(starts);
  in_hand_ += static_cast<int>(starts.size());
  return starts;
}

// An item goes ahead if it would have to wait for this worker anyway.
void WorkerPool::AddStartsAhead(std::vector<Start>& starts) {
  if (!options_.ahead || queue_.empty() || !idle_.empty()) return;
  if (asking_ == 0 && MayAsk()) return;
  for (const PlacePtr& place : places_) {
    if (!place->works || place->ahead_works || !place->is_counted || IsOver(*place)) continue;
    const auto item = FindTakeable(place->id(), /*ahead=*/true);
    if (item == queue_.end()) continue;
    place->ahead_works = true;
    starts.push_back({place, Hand::kAhead, std::move(*item)});
    queue_.erase(item);
    if (queue_.empty()) return;
  }
}

void WorkerPool::Proceed(Lock& lock) {
  const std::thread::id self = std::this_thread::get_id();
  if (std::ranges::find(proceeding_, self) != proceeding_.end()) return;
  proceeding_.push_back(self);
  while (true) {
    std::vector<Start> starts = Starts();
    std::vector<PlacePtr> let_go = std::exchange(let_go_, {});
    if (starts.empty() && let_go.empty()) break;
    lock.unlock();
    let_go.clear();
    for (Start& start : starts) Begin(std::move(start));
    lock.lock();
  }
  std::erase(proceeding_, self);
  if (NeedsLease()) {
    asked_.notify_one();
  } else if (MayNeedLease()) {
    LookAt(queue_.front()->queued_at + options_.ask_after);
  }
}

void WorkerPool::Begin(Start start) {
  if (start.item == nullptr) return BeginMeanwhile(start.place);
  const LeasedWorker& lease = start.place->lease;
  // The place goes with the call of the function, so that its lease is given back when it is told.
  auto place = std::make_shared<PlacePtr>(start.place);
  start.place = nullptr;
  work_(std::move(start.item), lease, stop_items_.get_token(),
        [this, place, hand = start.hand](Attempt attempt) {
          End(std::exchange(*place, nullptr), hand, std::move(attempt));
        });
}

void WorkerPool::BeginMeanwhile(const PlacePtr& place) {
  Piece piece = meanwhile_(place->lease, stop_.get_token());
  if (piece == nullptr) {
    // The lease has been idle all the time.
    std::lock_guard lock(mutex_);
    place->works = false;
    Rest(place);
    return NoteEnd();
  }
  helpers_.Run([this, place = std::make_shared<PlacePtr>(place), piece = std::move(piece)] {
    Attempt attempt = piece();
    End(std::exchange(*place, nullptr), Hand::kFirst, std::move(attempt));
  });
}

void WorkerPool::End(PlacePtr place, Hand hand, Attempt attempt) {
  Lock lock(mutex_);
  Settle(place->lease, std::move(attempt));
  if (hand == Hand::kFirst) {
    place->works = false;
    place->idle_until = Clock::now() + options_.idle_release;
    place->seen_events = events_ - 1;
  } else {
    place->ahead_works = false;
  }
  Rest(place);
  place.reset();
  Proceed(lock);
  NoteEnd();
}

void WorkerPool::NoteEnd() {
  if (--in_hand_ == 0) ended_.notify_all();
}

void WorkerPool::Rest(const PlacePtr& place) {
  const bool is_over = IsOver(*place);
  if (!is_over) Count(*place);
  if (place->works) return;
  if (!is_over && !std::exchange(place->is_idle, true)) idle_.push_front(place);
  if (place->ahead_works) return;
  if (is_over) return LetGo(place);
  LookAt(place->idle_until);
}

void WorkerPool::LeaveAlone(const LeasedWorker& lease, std::chrono::milliseconds pause,
                            std::string_view reason) {
  if (stop_.stop_requested()) return;
  const v1::WorkerState& worker = lease.worker();
  trouble_[worker.id()].until = Clock::now() + pause;
  problem_ = fmt::format("{} {} at {}: {}", options_.name, worker.id(), worker.address(), reason);
  LogWarn("{}; left alone for {} ms", problem_, pause.count());
  for (const PlacePtr& place : places_) {
    if (place->id() == worker.id()) Uncount(*place);
  }
  LookAt(Clock::now());
}

void WorkerPool::Settle(const LeasedWorker& lease, Attempt attempt) {
  const std::string& worker = lease.worker().id();
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
  ++events_;
}

}  // namespace kiln::scheduler
