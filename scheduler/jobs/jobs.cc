#include "scheduler/jobs/jobs.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/hash/digest.h"
#include "base/hash/unique_id.h"
#include "base/log.h"
#include "base/process/freed_memory.h"
#include "base/thread_pool.h"
#include "scheduler/fair_share/quotas.h"
#include "scheduler/jobs/retrying_store.h"
#include "scheduler/values/combined_stop.h"
#include "scheduler/values/computations.h"
#include "scheduler/values/request_trace.h"
#include "scheduler/values/served_code.h"

namespace kiln::scheduler {
namespace {

constexpr int kIdDigits = 8;
// A job that had so many runs in a row end with the death of the process is not run again by
// itself.
constexpr int kMaxFruitlessRuns = 2;
constexpr char kPausedMessage[] = "paused by request; `kiln jobs resume {}` goes on";

std::string JobIdOf(const std::string& request_id, int attempt) {
  return Sha256Hex(fmt::format("{} {}", RequestIdIn(request_id), attempt)).substr(0, kIdDigits);
}

std::string RequestIdOf(const store::JobRow& job) {
  v1::JobSpec spec;
  return spec.ParseFromString(job.spec) ? std::string(RequestIdIn(spec.request_id()))
                                        : std::string();
}

// Returns the phase of a job that waits for the user's process.
std::string WaitsFor(const v1::ServedCode& served) {
  return fmt::format(
      "waits for the process that serves its {}; client.serve(job, ...) in Python goes on with it",
      ServedParts(served));
}

// Says whether Options::unfinished has the job go on by itself.
bool GoesOn(std::string_view unfinished, const std::string& id) {
  constexpr std::string_view kAllBut = "not:";
  if (!unfinished.starts_with(kAllBut)) return unfinished == "all" || unfinished == id;
  const std::string left = fmt::format(",{},", unfinished.substr(kAllBut.size()));
  return left.find("," + id + ",") == std::string::npos;
}

bool IsSuspect(const store::JobRow& job) { return job.fruitless_runs > 0; }

// Tells whether the job runs again only by Resume.
bool Rests(const store::JobRow& job) {
  return store::IsFinal(job.state) || job.state == store::JobState::kPaused;
}

std::vector<store::TaskRow> TaskRows(const CheckedJob& job) {
  std::vector<store::TaskRow> rows;
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const v1::TaskSpec& spec = job.spec.tasks(static_cast<int>(i));
    store::TaskRow row;
    row.index = static_cast<uint32_t>(i);
    row.workload_id = job.tasks[i].workload_id;
    row.workload_key = job.tasks[i].workload_key;
    row.dag = spec.dag();
    row.target = spec.target();
    row.weight = spec.weight();
    row.description = spec.description();
    row.flop_count = job.tasks[i].flop_count;
    if (spec.has_alternative_of()) row.alternative_of = spec.alternative_of();
    row.variant = spec.variant();
    row.preparation = spec.preparation();
    row.network = spec.network();
    rows.push_back(std::move(row));
  }
  return rows;
}

// Lists the computations of the job under all keys, because logs may have older keys for them.
std::vector<store::Computation> ComputationsOf(const CheckedJob& job) {
  std::vector<store::Computation> all;
  for (const CheckedTask& task : job.tasks) {
    const std::vector<store::Computation> each = UnderAllKeys(*task.dag);
    all.insert(all.end(), each.begin(), each.end());
  }
  return all;
}

}  // namespace

Jobs::Jobs(store::Store& store, LeaseFactory leases, EventHub& events, const Options& options,
           Clock& clock)
    : store_(store),
      events_(events),
      options_(options),
      clock_(clock),
      callbacks_(clock),
      turns_(options.searches_at_once > 0 ? options.searches_at_once : AvailableCpus()) {
  callbacks_.OnChange([this](const std::string& job_id) {
    {
      std::lock_guard lock(mutex_);
      // A job whose process has come may be urgent.
      MakeRoom();
      changed_.notify_all();
    }
    events_.Notify(job_id);
  });
  context_.callbacks = &callbacks_;
  context_.store = &store_;
  context_.leases = std::move(leases);
  context_.store_pause = options_.store_pause;
  context_.dispatch = options_.dispatch;
  context_.turns = &turns_;
  context_.allowances = &allowances_;
  context_.changed = [this](const std::string& job_id) { events_.Notify(job_id); };
  context_.committed = [this](const std::string& job_id) {
    events_.NotifyResults(job_id);
    changed_.notify_all();  // a suspect may have a result now
  };
  context_.has_device = [this] {
    std::lock_guard lock(mutex_);
    ShareTasks();
  };
}

Jobs::~Jobs() { Stop(); }

int64_t Jobs::NowMs() const { return absl::ToUnixMillis(clock_.Now()); }

Status Jobs::Start() {
  KILN_ASSIGN_OR_RETURN(const std::vector<store::JobRow> unfinished, store_.LoadUnfinishedJobs());
  std::lock_guard lock(mutex_);
  for (const store::JobRow& job : unfinished) {
    if (job.state == store::JobState::kPaused) continue;
    if (job.fruitless_runs >= kMaxFruitlessRuns) {
      KILN_RETURN_IF_ERROR(SetAside(job));
    } else if (GoesOn(options_.unfinished, job.id)) {
      queue_.push_back(QueuedOf(job));
    }
  }
  if (!queue_.empty()) LogInfo("{} unfinished jobs are resumed", queue_.size());
  for (int i = 0; i < options_.max_running; ++i) threads_.emplace_back([this] { RunLoop(); });
  return OkStatus();
}

Status Jobs::SetAside(const store::JobRow& job) {
  const std::string why = fmt::format(
      "the scheduler died {} times in a row while this job ran, without a result in between, so "
      "the "
      "job was stopped; its records are kept, and it can be resumed by its id",
      job.fruitless_runs);
  LogError("job {} is not run again: {}", job.id, why);
  return store_.UpdateJobState(job.id, store::JobState::kFailed, why, NowMs());
}

void Jobs::Stop() {
  std::vector<std::thread> threads;
  stop_.request_stop();
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [id, run] : running_) run->Stop();
    changed_.notify_all();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

// ---- requests -------------------------------------------------------------------------------

// One request: who waits for its answer, for how long, and the store as the request sees it.
struct Jobs::Request {
  Request(Jobs& jobs, const std::string& what, const std::stop_token& gone)
      : until(std::chrono::steady_clock::now() + jobs.options_.request_patience),
        stop(jobs.stop_.get_token(), gone),
        store(jobs.store_, what, stop.token(), jobs.options_.store_pause, until) {}

  const std::chrono::steady_clock::time_point until;
  CombinedStop stop;
  RetryingStore store;
};

Status Jobs::Stopping() const { return Unavailable("the scheduler is stopping; try again"); }

bool Jobs::InHand(const std::string& job_id) const {
  return running_.contains(job_id) ||
         std::ranges::any_of(queue_, [&](const Queued& job) { return job.row.id == job_id; });
}

Jobs::Queued Jobs::QueuedOf(store::JobRow job) {
  Queued queued;
  v1::JobSpec spec;
  if (spec.ParseFromString(std::exchange(job.spec, {}))) {
    queued.keys = TaskKeysOf(spec);
    if (spec.has_served()) queued.served = std::move(*spec.mutable_served());
  }
  queued.awaited = AwaitedBeforeBegin(queued.keys);
  queued.row = std::move(job);
  if (HasBegun(queued)) queued.turn = ++last_turn_;
  return queued;
}

void Jobs::Enqueue(store::JobRow job) { Enqueue(QueuedOf(std::move(job))); }

void Jobs::Enqueue(Queued job) {
  queue_.push_back(std::move(job));
  MakeRoom();
  changed_.notify_all();
}

void Jobs::Dequeue(const std::string& job_id) {
  if (queue_.remove_if([&](const Queued& job) { return job.row.id == job_id; }) == 0) return;
  ShareTasks();
  changed_.notify_all();  // another job may have waited for this one
}

TunedTasks Jobs::TasksOfJobs(const std::function<bool(const Queued&)>& counts) const {
  TunedTasks tuned;
  for (const auto& [id, sharing] : sharing_) {
    const JobRun& run = *running_.at(id);
    tuned.Add(id, {run.job().priority, sharing.turn, run.tuners().device()}, sharing.keys);
  }
  for (const Queued& job : queue_) {
    if (counts(job)) tuned.Add(job.row.id, PlaceOf(job), job.keys);
  }
  return tuned;
}

void Jobs::ShareTasks() {
  const TunedTasks tuned = TasksOfJobs([](const Queued& job) { return job.only_awaits; });
  for (const auto& [id, sharing] : sharing_) {
    JobRun& run = *running_.at(id);
    run.tuners().Set(
        tuned.TunersOf(sharing.keys, {run.job().priority, sharing.turn, run.tuners().device()}));
  }
}

Jobs::Queued Jobs::QueuedAgain(store::JobRow row, const JobRun& run, Sharing sharing) {
  Queued queued = QueuedOf(std::move(row));
  const std::vector<bool>& left = run.left_to_others();
  if (left.empty()) return queued;
  queued.turn = sharing.turn;
  queued.only_awaits = true;
  queued.awaited = std::move(sharing.keys);
  for (size_t i = 0; i < queued.awaited.size(); ++i) {
    if (i >= left.size() || !left[i]) queued.awaited[i].clear();
  }
  return queued;
}

void Jobs::ShowWait(const Queued& queued, LiveStatus& live) const {
  if (LacksProcess(queued)) {
    live.phase = WaitsFor(*queued.served);
    return;
  }
  std::vector<std::string> tuners = TasksOfBegunJobs().TunersOf(queued.awaited, PlaceOf(queued));
  if (!WaitsForAll(queued.awaited, tuners)) return;
  live.phase = WaitPhase(tuners);
  live.tuned_by = std::move(tuners);
}

bool Jobs::LacksProcess(const Queued& queued) const {
  return queued.served.has_value() && !callbacks_.IsServed(queued.row.id);
}

Status Jobs::TakeIn(Request& request, const std::function<Status()>& work) {
  {
    std::unique_lock lock(mutex_);
    const auto free = [this] { return stopping_ || !taking_in_; };
    const bool in_time = changed_.wait_until(lock, request.stop.token(), request.until, free);
    if (stopping_) return Stopping();
    if (!in_time && request.stop.token().stop_requested())
      return Cancelled("the caller has disconnected");
    if (!in_time) return Unavailable("others wait for the database; try again");
    taking_in_ = true;
  }
  Status status = work();
  std::lock_guard lock(mutex_);
  taking_in_ = false;
  changed_.notify_all();
  if (stopping_ && status.code() == StatusCode::kCancelled) return Stopping();
  return status;
}

// Derives the id from the request, so that the same request finds its job again.
StatusOr<store::JobRow> Jobs::AddJob(Request& request, const CheckedJob& checked) {
  store::JobRow job;
  job.name = checked.spec.name();
  job.user = checked.spec.user();
  job.priority = checked.spec.priority();
  job.trials = checked.spec.options().trials();
  job.spec = checked.spec.SerializeAsString();
  job.created_ms = NowMs();
  const std::vector<store::TaskRow> tasks = TaskRows(checked);
  KILN_RETURN_IF_ERROR(request.store.AddComputations(ComputationsOf(checked)));
  for (int attempt = 0;; ++attempt) {
    job.id = JobIdOf(checked.spec.request_id(), attempt);
    const Status added = request.store.AddJob(job, tasks);
    if (added.ok()) return job;
    if (added.code() != StatusCode::kAlreadyExists) return added;
    KILN_ASSIGN_OR_RETURN(store::JobRow there, request.store.GetJob(job.id));
    if (RequestIdOf(there) == RequestIdIn(checked.spec.request_id())) return there;
  }
}

StatusOr<std::string> Jobs::Submit(const v1::JobSpec& spec, const std::string& request_id,
                                   const std::stop_token& gone) {
  Request request(*this, "a job that is submitted", gone);
  v1::JobSpec named = spec;
  named.set_request_id(request_id.empty() ? UniqueId() : request_id);
  KILN_ASSIGN_OR_RETURN(const CheckedJob checked,
                        CheckJobSpec(std::move(named), request.stop.token()));
  std::string id;
  KILN_RETURN_IF_ERROR(TakeIn(request, [&]() -> Status {
    {
      std::lock_guard lock(mutex_);
      KILN_RETURN_IF_ERROR(CheckRoom(checked.spec.user()));
    }
    KILN_RETURN_IF_ERROR(CheckLimits(request, checked));
    KILN_ASSIGN_OR_RETURN(store::JobRow job, AddJob(request, checked));
    id = job.id;
    std::lock_guard lock(mutex_);
    if (job.state != store::JobState::kQueued || InHand(id)) return OkStatus();
    LogInfo("job {} '{}' of '{}': {} tasks, {} trials, priority {}", id, job.name, job.user,
            checked.tasks.size(), checked.spec.options().trials(), job.priority);
    Enqueue(std::move(job));
    return OkStatus();
  }));
  return id;
}

Status Jobs::CheckRoom(const std::string& user) const {
  const size_t jobs = queue_.size() + running_.size();
  if (jobs >= options_.most_jobs) {
    return ResourceExhausted("{} jobs are unfinished, no more are accepted; try again later", jobs);
  }
  size_t own = 0;
  for (const Queued& job : queue_) own += job.row.user == user;
  for (const auto& [id, run] : running_) own += run->job().user == user;
  if (own < options_.most_of_a_user) return OkStatus();
  return ResourceExhausted(
      "{} jobs of '{}' are unfinished, no more are accepted; cancel some, or try again later", own,
      user);
}

Status Jobs::CheckLimits(Request& request, const CheckedJob& checked) const {
  if (!HasQuotas(LimitsOf(checked.spec.user()))) return OkStatus();
  // A request whose answer was lost asks for its job again.
  const auto there = request.store.GetJob(JobIdOf(checked.spec.request_id(), 0));
  if (there.ok() && RequestIdOf(*there) == RequestIdIn(checked.spec.request_id()))
    return OkStatus();
  return CheckLimits(request, checked.spec.user(), checked.spec.options().trials());
}

Status Jobs::CheckLimits(Request& request, const store::JobRow& ended) const {
  if (!HasQuotas(LimitsOf(ended.user))) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const store::TrialCounts done, request.store.CountTrials(ended.id));
  return CheckLimits(request, ended.user,
                     ended.trials - std::min<uint64_t>(ended.trials, done.total));
}

Status Jobs::CheckLimits(Request& request, const std::string& user, uint64_t trials) const {
  const store::UserLimits limits = LimitsOf(user);
  KILN_ASSIGN_OR_RETURN(
      const store::UserTotals totals,
      request.store.TotalsOfUser(user, NowMs() / 1000 - kDay_s, limits.stored_bytes > 0));
  return CheckQuotas(user, limits, totals, trials);
}

store::UserLimits Jobs::LimitsOf(const std::string& user) const {
  return options_.shares == nullptr ? store::UserLimits() : options_.shares->LimitsOf(user);
}

Status Jobs::Pause(const std::string& job_id, const std::stop_token& gone) {
  Request request(*this, "a request to pause job " + job_id, gone);
  // The store is changed first: a pause that was answered survives a death of the scheduler.
  const Status paused = request.store.UpdateJobState(job_id, store::JobState::kPaused,
                                                     fmt::format(kPausedMessage, job_id), NowMs());
  if (paused.code() == StatusCode::kCancelled && stop_.stop_requested()) return Stopping();
  KILN_RETURN_IF_ERROR(paused);
  {
    std::lock_guard lock(mutex_);
    Dequeue(job_id);
    const auto it = running_.find(job_id);
    if (it != running_.end()) it->second->Pause();
  }
  LogInfo("job {} is paused", job_id);
  events_.Notify(job_id);
  return OkStatus();
}

Status Jobs::Cancel(const std::string& job_id, const std::stop_token& gone) {
  Request request(*this, "a request to cancel job " + job_id, gone);
  // The store is changed first: a cancel that was answered survives a death of the scheduler.
  const Status cancelled = request.store.UpdateJobState(job_id, store::JobState::kCancelled,
                                                        "cancelled by request", NowMs());
  if (cancelled.code() == StatusCode::kCancelled && stop_.stop_requested()) return Stopping();
  KILN_RETURN_IF_ERROR(cancelled);
  {
    std::lock_guard lock(mutex_);
    Dequeue(job_id);
    const auto it = running_.find(job_id);
    if (it != running_.end()) it->second->Stop();
  }
  LogInfo("job {} is cancelled", job_id);
  events_.Notify(job_id);
  return OkStatus();
}

Status Jobs::Resume(const std::string& job_id, const std::stop_token& gone) {
  Request request(*this, "a request to resume job " + job_id, gone);
  KILN_RETURN_IF_ERROR(AwaitEnd(request, job_id));
  KILN_RETURN_IF_ERROR(TakeIn(request, [&] { return Reopen(request, job_id); }));
  events_.Notify(job_id);
  return OkStatus();
}

Status Jobs::AwaitEnd(Request& request, const std::string& job_id) {
  KILN_ASSIGN_OR_RETURN(const store::JobRow job, request.store.GetJob(job_id));
  if (!Rests(job)) return OkStatus();
  std::unique_lock lock(mutex_);
  const auto ended = [&] { return stopping_ || !running_.contains(job_id); };
  changed_.wait_until(lock, request.stop.token(), request.until, ended);
  if (stopping_) return Stopping();
  if (running_.contains(job_id)) return StillRuns(job_id);
  return OkStatus();
}

Status Jobs::StillRuns(const std::string& job_id) const {
  return Unavailable("job {} has not ended yet: its runners finish the trials in hand; try again",
                     job_id);
}

Status Jobs::Reopen(Request& request, const std::string& job_id) {
  KILN_ASSIGN_OR_RETURN(const store::JobRow before, request.store.GetJob(job_id));
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return Stopping();
    if (!Rests(before) && InHand(job_id)) return OkStatus();
    if (running_.contains(job_id)) return StillRuns(job_id);
    // The job was paused, or ended, while it went back to the queue.
    Dequeue(job_id);
    KILN_RETURN_IF_ERROR(CheckRoom(before.user));
  }
  if (store::IsFinal(before.state)) KILN_RETURN_IF_ERROR(CheckLimits(request, before));
  KILN_RETURN_IF_ERROR(request.store.ReopenJob(job_id));
  KILN_ASSIGN_OR_RETURN(store::JobRow job, request.store.GetJob(job_id));
  LogInfo("job {} is resumed by request", job_id);
  std::lock_guard lock(mutex_);
  Enqueue(std::move(job));
  return OkStatus();
}

StatusOr<v1::JobStatus> Jobs::StatusOf(const store::JobRow& job) const {
  std::shared_ptr<const JobRun> run;
  LiveStatus live;
  {
    std::lock_guard lock(mutex_);
    const auto it = running_.find(job.id);
    if (it != running_.end()) run = it->second;
    const auto queued =
        std::ranges::find_if(queue_, [&](const Queued& other) { return other.row.id == job.id; });
    if (queued != queue_.end()) ShowWait(*queued, live);
  }
  if (run != nullptr) live = run->live();
  return StatusMessage(store_, job, live, NowMs());
}

// ---- running --------------------------------------------------------------------------------

bool Jobs::IsSuspectJobRunning() const {
  return std::any_of(running_.begin(), running_.end(), [](const auto& entry) {
    return IsSuspect(entry.second->job()) && !entry.second->has_result();
  });
}

std::list<Jobs::Queued>::iterator Jobs::NextJobToRun() {
  const bool occupied = IsSuspectJobRunning();
  // A user of whom nothing runs goes first, as in Outranks: his use says little, because he has not
  // competed.
  std::map<std::string, std::tuple<bool, double, int>> users;
  const auto rank = [&](const Queued& job) {
    const auto [user, is_new] = users.try_emplace(job.row.user);
    if (is_new) {
      const int running = RunningOf(job.row.user);
      user->second = {running > 0, UseOf(job.row.user), running};
    }
    return std::pair(-int64_t{job.row.priority}, user->second);
  };
  const TunedTasks tuned = TasksOfBegunJobs();
  auto most = queue_.end();
  for (auto job = queue_.begin(); job != queue_.end(); ++job) {
    const bool waits = WaitsForAll(job->awaited, tuned.TunersOf(job->awaited, PlaceOf(*job)));
    if (waits || LacksProcess(*job) || (occupied && IsSuspect(job->row))) continue;
    if (most == queue_.end() || rank(*job) < rank(*most)) most = job;
  }
  return most;
}

// ---- room for jobs --------------------------------------------------------------------------

double Jobs::UseOf(const std::string& user) const {
  return options_.shares == nullptr ? 0 : options_.shares->Use(user);
}

int Jobs::RunningOf(const std::string& user) const {
  return static_cast<int>(std::ranges::count_if(
      running_, [&](const auto& entry) { return entry.second->job().user == user; }));
}

bool Jobs::Outranks(const Queued& queued, const JobRun& run) const {
  if (queued.row.priority != run.job().priority) return queued.row.priority > run.job().priority;
  return RunningOf(queued.row.user) == 0 && RunningOf(run.job().user) > 1;
}

void Jobs::MakeRoom() {
  if (static_cast<int>(running_.size()) < options_.max_running) return;
  const auto next = NextJobToRun();
  if (next == queue_.end()) return;
  JobRun* victim = nullptr;
  for (const auto& [id, run] : running_) {
    // One at a time.
    if (run->makes_way()) return;
    if (!Outranks(*next, *run)) continue;
    const auto rank = [this](const JobRun& job) {
      return std::pair(job.job().priority, -RunningOf(job.job().user));
    };
    if (victim == nullptr || rank(*run) < rank(*victim)) victim = run.get();
  }
  if (victim == nullptr) return;
  LogInfo("job {} makes way for job {}", victim->job().id, next->row.id);
  victim->MakeWay();
}

void Jobs::RunLoop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || NextJobToRun() != queue_.end(); });
    if (stopping_) return;
    const auto job = NextJobToRun();
    auto run = std::make_shared<JobRun>(context_, job->row);
    const std::string id = run->job().id;
    running_[id] = run;
    const uint64_t turn = HasBegun(*job) ? job->turn : ++last_turn_;
    sharing_[id] = {std::move(job->keys), turn};
    queue_.erase(job);
    ShareTasks();
    lock.unlock();
    std::optional<store::JobRow> again = RunJob(*run);
    lock.lock();
    running_.erase(id);
    Sharing sharing = std::move(sharing_.extract(id).mapped());
    if (again.has_value()) Enqueue(QueuedAgain(*std::move(again), *run, std::move(sharing)));
    ShareTasks();
    MakeRoom();
    changed_.notify_all();
    lock.unlock();
    events_.Notify(id);
    run.reset();
    GiveBackFreedMemory();
    lock.lock();
  }
}

std::optional<store::JobRow> Jobs::RunJob(JobRun& run) {
  const store::JobRow& job = run.job();
  const Status begun = run.store().UpdateJobState(job.id, store::JobState::kRunning, "", NowMs());
  if (!begun.ok()) {
    LogInfo("job {} does not begin: {}", job.id, Message(begun));
    // The job was cancelled after it left the queue, or stopped before the database took its state.
    const bool ended =
        begun.code() == StatusCode::kFailedPrecondition || begun.code() == StatusCode::kCancelled;
    if (begun.code() == StatusCode::kCancelled && run.makes_way()) return RequeuedRow(run);
    if (!ended) SetState(run, store::JobState::kFailed, Message(begun));
    return std::nullopt;
  }
  LogInfo("job {} '{}' runs", job.id, job.name);
  events_.Notify(job.id);
  const StatusOr<std::string> result = run.Run();
  if (result.ok()) {
    SetState(run, store::JobState::kSucceeded, *result);
  } else if (run.lost_process()) {
    return RequeuedRow(run);
  } else if (result.status().code() != StatusCode::kCancelled) {
    SetState(run, store::JobState::kFailed, Message(result.status()));
  } else if (run.makes_way() || !run.left_to_others().empty()) {
    return RequeuedRow(run);
  } else {
    // The job was stopped in order. If it was cancelled, or the database is away, its state stays
    // as it is.
    store_.UpdateJobState(job.id, store::JobState::kQueued, "", NowMs()).IgnoreError();
  }
  return std::nullopt;
}

std::optional<store::JobRow> Jobs::RequeuedRow(JobRun& run) {
  const std::string& id = run.job().id;
  // The run was stopped, so its own store would give up at once where the database is away.
  RetryingStore store(store_, "job " + id, stop_.get_token(), options_.store_pause);
  const Status queued = store.UpdateJobState(id, store::JobState::kQueued, "", NowMs());
  // The job was cancelled meanwhile, or the scheduler stops.
  if (!queued.ok()) return std::nullopt;
  if (run.lost_process()) LogInfo("job {} waits for the process that serves it", id);
  StatusOr<store::JobRow> row = store.GetJob(id);
  return row.ok() ? std::optional(*std::move(row)) : std::nullopt;
}

// Writes the final state. A state that is not written because the scheduler stops is found again by
// the next process.
void Jobs::SetState(JobRun& run, store::JobState state, std::string_view message) {
  const std::string& job_id = run.job().id;
  const Status status = run.store().UpdateJobState(job_id, state, message, NowMs());
  if (status.ok()) {
    LogInfo("job {} {}{}{}", job_id, store::JobStateName(state), message.empty() ? "" : ": ",
            message);
    if (options_.ended != nullptr && store::IsFinal(state)) options_.ended(job_id);
    return;
  }
  // The job was cancelled meanwhile. The first final state wins.
  if (status.code() == StatusCode::kFailedPrecondition) return;
  LogError("job {} has {}, but the database does not accept it: {}", job_id,
           store::JobStateName(state), Message(status));
}

}  // namespace kiln::scheduler
