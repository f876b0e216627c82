#include "scheduler/jobs.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/unique_id.h"

namespace kiln::scheduler {
namespace {

constexpr int kIdDigits = 8;
constexpr std::chrono::seconds kWriteAgain{1};

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
    row.form = spec.form();
    row.preparation = spec.preparation();
    row.network = spec.network();
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

Jobs::Jobs(store::Store& store, LeaseFactory leases, EventHub& events, const Options& options,
           Clock& clock)
    : store_(store), events_(events), options_(options), clock_(clock) {
  context_.store = &store_;
  context_.leases = std::move(leases);
  context_.dispatch = options_.dispatch;
  context_.changed = [this](const std::string& job_id) { events_.Notify(job_id); };
}

Jobs::~Jobs() { Stop(); }

int64_t Jobs::NowMs() const { return absl::ToUnixMillis(clock_.Now()); }

Status Jobs::Start() {
  KILN_ASSIGN_OR_RETURN(std::vector<store::JobRow> unfinished, store_.LoadUnfinishedJobs());
  if (!unfinished.empty()) LogInfo("{} unfinished jobs are resumed", unfinished.size());
  std::lock_guard lock(mutex_);
  queue_.insert(queue_.end(), unfinished.begin(), unfinished.end());
  for (int i = 0; i < options_.max_running; ++i) threads_.emplace_back([this] { RunLoop(); });
  return OkStatus();
}

void Jobs::Stop() {
  std::vector<std::thread> threads;
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

StatusOr<std::string> Jobs::Submit(const v1::JobSpec& spec) {
  KILN_ASSIGN_OR_RETURN(const CheckedJob checked, CheckJobSpec(spec));
  store::JobRow job;
  job.name = checked.spec.name();
  job.user = checked.spec.user();
  job.priority = checked.spec.priority();
  job.spec = checked.spec.SerializeAsString();
  job.created_ms = NowMs();
  const std::vector<store::TaskRow> tasks = TaskRows(checked);
  std::lock_guard lock(mutex_);  // jobs are queued in the order of the store
  if (stopping_) return Unavailable("the scheduler is stopping; try again");
  Status added;
  do {
    job.id = UniqueId(kIdDigits);
    added = store_.AddJob(job, tasks);
  } while (added.code() == StatusCode::kAlreadyExists);
  KILN_RETURN_IF_ERROR(added);
  LogInfo("job {} '{}' of '{}': {} tasks, {} trials, priority {}", job.id, job.name, job.user,
          tasks.size(), checked.spec.options().trials(), job.priority);
  const std::string id = job.id;
  queue_.push_back(std::move(job));
  changed_.notify_all();
  return id;
}

Status Jobs::Cancel(const std::string& job_id) {
  // In the store first: a cancel that was answered survives our death.
  KILN_RETURN_IF_ERROR(
      store_.UpdateJobState(job_id, store::JobState::kCancelled, "cancelled by request", NowMs()));
  {
    std::lock_guard lock(mutex_);
    queue_.remove_if([&](const store::JobRow& job) { return job.id == job_id; });
    const auto it = running_.find(job_id);
    if (it != running_.end()) it->second->Stop();
  }
  LogInfo("job {} is cancelled", job_id);
  events_.Notify(job_id);
  return OkStatus();
}

StatusOr<v1::JobStatus> Jobs::StatusOf(const store::JobRow& job) const {
  std::shared_ptr<const JobRun> run;
  {
    std::lock_guard lock(mutex_);
    const auto it = running_.find(job.id);
    if (it != running_.end()) run = it->second;
  }
  return StatusMessage(store_, job, run == nullptr ? LiveStatus() : run->live(), NowMs());
}

// ---- running --------------------------------------------------------------------------------

store::JobRow Jobs::TakeMostUrgent() {
  const auto most = std::max_element(
      queue_.begin(), queue_.end(),
      [](const store::JobRow& a, const store::JobRow& b) { return a.priority < b.priority; });
  store::JobRow job = std::move(*most);
  queue_.erase(most);
  return job;
}

void Jobs::RunLoop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const store::JobRow job = TakeMostUrgent();
    const auto run = std::make_shared<JobRun>(context_, job);
    running_[job.id] = run;
    lock.unlock();
    RunJob(*run, job);
    lock.lock();
    running_.erase(job.id);
    lock.unlock();
    events_.Notify(job.id);
    lock.lock();
  }
}

void Jobs::RunJob(JobRun& run, const store::JobRow& job) {
  const Status begun = store_.UpdateJobState(job.id, store::JobState::kRunning, "", NowMs());
  // Cancelled between the queue and here.
  if (begun.code() == StatusCode::kFailedPrecondition) return;
  if (!begun.ok()) LogError("job {}: {}", job.id, Message(begun));
  LogInfo("job {} '{}' runs", job.id, job.name);
  events_.Notify(job.id);
  const StatusOr<std::string> result = run.Run();
  if (result.ok()) {
    SetState(job.id, store::JobState::kSucceeded, *result);
  } else if (result.status().code() != StatusCode::kCancelled) {
    SetState(job.id, store::JobState::kFailed, Message(result.status()));
  }
}

// Tries until the store takes it, or we stop: the job is then resumed and ends again.
void Jobs::SetState(const std::string& job_id, store::JobState state, std::string_view message) {
  while (true) {
    const Status status = store_.UpdateJobState(job_id, state, message, NowMs());
    if (status.ok()) {
      LogInfo("job {} {}{}{}", job_id, store::JobStateName(state), message.empty() ? "" : ": ",
              message);
      return;
    }
    // It was cancelled meanwhile: the first final state wins.
    if (status.code() == StatusCode::kFailedPrecondition) return;
    LogError("job {} has {}, but the database does not take it: {}", job_id,
             store::JobStateName(state), Message(status));
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, kWriteAgain, [this] { return stopping_; })) return;
  }
}

}  // namespace kiln::scheduler
