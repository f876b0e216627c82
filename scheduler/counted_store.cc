#include "scheduler/counted_store.h"

#include "proto/trial.pb.h"

namespace kiln::scheduler {
namespace {

constexpr char kOther[] = "other";

constexpr store::JobState kUnfinished[] = {store::JobState::kQueued, store::JobState::kRunning,
                                           store::JobState::kPaused};

// Returns whether the error is that of the medium, and not of the call.
bool IsOfMedium(const Status& status) {
  switch (status.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kResourceExhausted:
    case StatusCode::kInternal:
    case StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

}  // namespace

CountedStore::CountedStore(store::Store& store, Metrics& metrics, Clock& clock)
    : StoreDecorator(store),
      metrics_(metrics),
      clock_(clock),
      commit_s_(metrics.AddHistogram(
          "kiln_commit_seconds", "Time of a commit that has results of trials.", SecondsBounds())),
      build_s_(metrics.AddHistogram("kiln_trial_build_seconds",
                                    "Time of a trial's build, as its builder told it.",
                                    SecondsBounds())),
      build_wait_s_(metrics.AddHistogram("kiln_trial_build_wait_seconds",
                                         "Time that a trial waited at its builder.",
                                         SecondsBounds())),
      run_wait_s_(metrics.AddHistogram("kiln_trial_run_wait_seconds",
                                       "Time that a trial waited at its runner.", SecondsBounds())),
      search_s_(metrics.AddHistogram("kiln_search_round_seconds",
                                     "Time in which a search found the candidates of a round, the "
                                     "training of its model included.",
                                     SecondsBounds())),
      errors_(metrics.AddCounter("kiln_store_errors_total",
                                 "Calls that the database or its disk refused.")),
      collector_(metrics.AddCollector([this](MetricSheet& sheet) { Collect(sheet); })) {
  for (const auto state :
       {store::JobState::kSucceeded, store::JobState::kFailed, store::JobState::kCancelled}) {
    ended_[state] = metrics.AddCounter("kiln_jobs_ended_total", "Jobs that ended, by how.",
                                       {{"state", std::string(store::JobStateName(state))}});
  }
}

Status CountedStore::Around(Access, const std::function<Status()>& call) {
  Status status = call();
  if (IsOfMedium(status)) errors_.Add();
  return status;
}

// ---- jobs -----------------------------------------------------------------------------------

void CountedStore::Note(const store::JobRow& job) { jobs_[job.id] = {job.state, job.user}; }

Status CountedStore::AddJob(const store::JobRow& job, std::span<const store::TaskRow> tasks) {
  KILN_RETURN_IF_ERROR(StoreDecorator::AddJob(job, tasks));
  const std::lock_guard lock(mutex_);
  if (!store::IsFinal(job.state)) Note(job);
  return OkStatus();
}

Status CountedStore::UpdateJobState(std::string_view job_id, store::JobState state,
                                    std::string_view message, int64_t now_ms) {
  KILN_RETURN_IF_ERROR(StoreDecorator::UpdateJobState(job_id, state, message, now_ms));
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end()) return OkStatus();
  if (!store::IsFinal(state)) {
    found->second.state = state;
    return OkStatus();
  }
  ended_[state].Add();
  jobs_.erase(found);
  return OkStatus();
}

Status CountedStore::ReopenJob(std::string_view job_id) {
  KILN_RETURN_IF_ERROR(StoreDecorator::ReopenJob(job_id));
  const auto job = GetJob(job_id);
  const std::lock_guard lock(mutex_);
  if (job.ok()) Note(*job);
  return OkStatus();
}

StatusOr<std::vector<store::JobRow>> CountedStore::LoadUnfinishedJobs() {
  auto jobs = StoreDecorator::LoadUnfinishedJobs();
  if (!jobs.ok()) return jobs;
  const std::lock_guard lock(mutex_);
  for (const store::JobRow& job : *jobs) Note(job);
  return jobs;
}

void CountedStore::Collect(MetricSheet& sheet) {
  std::map<store::JobState, int> counts;
  for (const store::JobState state : kUnfinished) counts[state] = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, job] : jobs_) ++counts[job.state];
  }
  for (const auto& [state, count] : counts) {
    sheet.Gauge("kiln_jobs", "Jobs that have not ended, by state.", count,
                {{"state", std::string(store::JobStateName(state))}});
  }
}

// ---- results --------------------------------------------------------------------------------

StatusOr<std::vector<int64_t>> CountedStore::AddRecords(
    std::span<const store::Record> records, std::span<const store::ReferenceCost> costs) {
  const double start_s = clock_.MonotonicSeconds();
  auto ids = StoreDecorator::AddRecords(records, costs);
  if (!ids.ok() || records.empty()) return ids;
  commit_s_.Add(clock_.MonotonicSeconds() - start_s);
  const std::lock_guard lock(mutex_);
  for (const store::Record& record : records) Count(record);
  return ids;
}

void CountedStore::Count(const store::Record& record) {
  const OfTarget& counts = CountsOf(record.target);
  if (record.error >= 0 && record.error < store::kNumErrorKinds) {
    counts.trials[static_cast<size_t>(record.error)].Add();
  }
  build_s_.Add(record.build_s);
  if (!record.runner.empty()) {
    counts.run_s.Add(record.run_s);
    DeviceSecondsOf(record.job_id).Add(record.run_s);
  }
  v1::TrialTimes times;
  if (record.times.empty() || !times.ParseFromString(record.times)) return;
  build_wait_s_.Add(times.build_wait_s());
  if (!record.runner.empty()) run_wait_s_.Add(times.run_wait_s());
}

const CountedStore::OfTarget& CountedStore::CountsOf(const std::string& target) {
  std::string kind = target.substr(0, target.find(' '));
  if (!targets_.contains(kind) && targets_.size() >= kMostTargets) kind = kOther;
  if (const auto found = targets_.find(kind); found != targets_.end()) return found->second;
  OfTarget& made = targets_[kind];
  for (int error = 0; error < store::kNumErrorKinds; ++error) {
    made.trials[static_cast<size_t>(error)] = metrics_.AddCounter(
        "kiln_trials_total", "Trials whose results are in the database, by result.",
        {{"target", kind}, {"error", v1::ErrorKind_Name(static_cast<v1::ErrorKind>(error))}});
  }
  made.run_s = metrics_.AddHistogram("kiln_trial_run_seconds", "Time of a trial on its device.",
                                     SecondsBounds(), {{"target", kind}});
  return made;
}

const Counter& CountedStore::DeviceSecondsOf(const std::string& job_id) {
  const auto job = jobs_.find(job_id);
  std::string user = job == jobs_.end() ? kOther : job->second.user;
  if (!device_seconds_.contains(user) && device_seconds_.size() >= kMostUsers) user = kOther;
  const auto found = device_seconds_.find(user);
  if (found != device_seconds_.end()) return found->second;
  return device_seconds_[user] = metrics_.AddCounter(
             "kiln_user_device_seconds_total",
             "Time of devices that trials of the user's jobs took.", {{"user", user}});
}

StatusOr<uint32_t> CountedStore::AddRound(const store::RoundRow& row) {
  auto number = StoreDecorator::AddRound(row);
  if (number.ok()) search_s_.Add(row.search_s);
  return number;
}

}  // namespace kiln::scheduler
