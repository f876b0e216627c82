#include "scheduler/pages/trial_digest.h"

#include <algorithm>
#include <iterator>

#include "scheduler/values/messages.h"

namespace kiln::scheduler {
namespace {

constexpr size_t kMostCauseBytes = 300;

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Returns the text with each number replaced by "#", so that texts which differ in numbers alone
// become equal.
std::string WithoutNumbers(std::string_view text) {
  std::string out;
  bool in_number = false;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (is_digit && !in_number) out += '#';
    if (!is_digit) out += c;
    in_number = is_digit;
  }
  return out;
}

void Join(TrialBucket& into, const TrialBucket& other) {
  into.first = std::min(into.first, other.first);
  into.last = std::max(into.last, other.last);
  if (other.measured > 0) {
    into.low_s = into.measured > 0 ? std::min(into.low_s, other.low_s) : other.low_s;
    into.high_s = std::max(into.high_s, other.high_s);
  }
  into.measured += other.measured;
  into.failed += other.failed;
}

// Makes the buckets twice as wide until there are few enough.
void Widen(size_t most, TaskDigest& task) {
  while (task.buckets.size() > most) {
    task.width *= 2;
    std::map<uint32_t, TrialBucket> wider;
    for (const auto& [number, bucket] : task.buckets) {
      const auto [at, is_new] = wider.try_emplace(number / 2, bucket);
      if (!is_new) Join(at->second, bucket);
    }
    task.buckets = std::move(wider);
  }
}

// Drops every second point between the first and the last one.
void Thin(std::vector<BestPoint>& points) {
  std::vector<BestPoint> kept;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i % 2 == 0 || i + 1 == points.size()) kept.push_back(points[i]);
  }
  points = std::move(kept);
}

}  // namespace

void TrialDigest::Add(const store::Record& record) {
  if (trials_ % kPageTrials == 0) page_starts_.push_back(record.id);
  ++trials_;
  last_id_ = record.id;
  TaskDigest& task = tasks_[record.task_index];
  AddToBucket(record, tasks_.size() <= kManyTasks ? kMostBuckets : kFewBuckets, task);
  if (record.error == store::kNoError) {
    AddMeasured(record, task);
  } else {
    AddFailure(record);
  }
}

void TrialDigest::AddToBucket(const store::Record& record, size_t most, TaskDigest& task) {
  TrialBucket trial = {.first = record.trial, .last = record.trial};
  if (record.error == store::kNoError) {
    trial.low_s = trial.high_s = store::MeanCost(record);
    trial.measured = 1;
  } else {
    trial.failed = 1;
  }
  const auto [at, is_new] = task.buckets.try_emplace(record.trial / task.width, trial);
  if (!is_new) Join(at->second, trial);
  Widen(most, task);
}

void TrialDigest::AddMeasured(const store::Record& record, TaskDigest& task) {
  task.top.insert(store::RankOf(record));
  if (task.top.size() > kMostTop) task.top.erase(std::prev(task.top.end()));
  const double cost_s = store::MeanCost(record);
  if (!task.best.empty() && task.best.back().cost_s <= cost_s) return;
  // A result may come after that of a later trial: the curve never goes back.
  const uint32_t trial =
      task.best.empty() ? record.trial : std::max(record.trial, task.best.back().trial);
  task.best.push_back({trial, cost_s});
  if (task.best.size() > kMostBestPoints) Thin(task.best);
}

void TrialDigest::AddFailure(const store::Record& record) {
  const std::string line = CutText(FirstLine(record.message), kMostCauseBytes);
  CauseKey key = {record.error, WithoutNumbers(line)};
  const bool is_known = causes_.contains(key);
  if (!is_known && causes_.size() >= kMostCauses) key.second = "";
  const auto [at, is_new] = causes_.try_emplace(key);
  FailureCause& cause = at->second;
  if (is_new) cause.first_trial = record.trial;
  cause.error = record.error;
  cause.message = line;
  cause.first_trial = std::min(cause.first_trial, record.trial);
  if (record.trial >= cause.last_trial) {
    cause.last_trial = record.trial;
    cause.record = record.id;
  }
  ++cause.count;
}

std::vector<FailureCause> TrialDigest::causes() const {
  std::vector<FailureCause> causes;
  for (const auto& [key, cause] : causes_) causes.push_back(cause);
  std::ranges::stable_sort(
      causes, [](const FailureCause& a, const FailureCause& b) { return a.count > b.count; });
  return causes;
}

StatusOr<std::vector<store::Record>> NextRecords(store::Store& store, const std::string& job_id,
                                                 int64_t after_id, uint32_t most) {
  store::RecordFilter filter;
  filter.job_id = job_id;
  filter.include_errors = true;
  filter.after_id = after_id;
  std::vector<store::Record> records;
  KILN_RETURN_IF_ERROR(store.Read([&](store::Store::Snapshot& snapshot) -> Status {
    KILN_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, snapshot.Ids(filter, {}, most));
    KILN_ASSIGN_OR_RETURN(records, snapshot.Records(ids));
    return OkStatus();
  }));
  return records;
}

StatusOr<bool> ReadTrials(store::Store& store, const std::string& job_id, uint32_t most,
                          TrialDigest& digest) {
  KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> records,
                        NextRecords(store, job_id, digest.last_id(), most));
  for (const store::Record& record : records) digest.Add(record);
  return records.size() < most;
}

}  // namespace kiln::scheduler
