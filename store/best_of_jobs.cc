#include "store/best_of_jobs.h"

#include <utility>

namespace kiln::store {
namespace {

// Returns whether a new record may take the place of the best one, or of an equal finalist beside
// it (record_order.h).
bool MayChange(const BestOfJobs::Answer& best, const Record& record) {
  if (record.error != kNoError) return false;
  return !best.has_value() || BetterThan(record, *best) || record.confidence_s.has_value() ||
         !best->equal_ids.empty();
}

}  // namespace

std::optional<BestOfJobs::Answer> BestOfJobs::Find(const Question& question) const {
  std::lock_guard lock(mutex_);
  const auto job = jobs_.find(question.job_id);
  if (job == jobs_.end()) return std::nullopt;
  const auto found = job->second.answers.find({question.task_index, question.kind});
  if (found == job->second.answers.end()) return std::nullopt;
  return std::optional<Answer>(std::in_place, found->second);
}

std::optional<uint64_t> BestOfJobs::BeginRead(std::string_view job_id) const {
  std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_id);
  return job == jobs_.end() ? std::nullopt : std::optional(job->second.version);
}

void BestOfJobs::Keep(const Question& question, std::optional<uint64_t> version,
                      const Answer& answer) {
  std::lock_guard lock(mutex_);
  const auto job = jobs_.find(question.job_id);
  if (job == jobs_.end() || version != job->second.version) return;
  if (answers_ >= kMostAnswers) {
    for (auto& [id, other] : jobs_) other.answers.clear();
    answers_ = 0;
  }
  const Key key(question.task_index, question.kind);
  answers_ += job->second.answers.insert_or_assign(key, answer).second ? 1 : 0;
}

bool BestOfJobs::Knows(std::string_view job_id) const {
  std::lock_guard lock(mutex_);
  return jobs_.contains(job_id);
}

void BestOfJobs::Begin(const std::string& job_id) {
  std::lock_guard lock(mutex_);
  if (jobs_.size() >= kMostJobs && !jobs_.contains(job_id)) {
    jobs_.clear();
    answers_ = 0;
  }
  jobs_[job_id].version = ++versions_;
}

void BestOfJobs::Drop(Job& job, const Key& key) { answers_ -= job.answers.erase(key); }

void BestOfJobs::Add(const Record& record) {
  std::lock_guard lock(mutex_);
  const auto found = jobs_.find(record.job_id);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  job.version = ++versions_;
  const Key best(record.task_index, Kind::kBest);
  const auto kept = job.answers.find(best);
  if (kept != job.answers.end() && MayChange(kept->second, record)) Drop(job, best);
  const bool is_unscheduled = record.error == kNoError && record.steps == kNoSteps;
  if (is_unscheduled) Drop(job, {record.task_index, Kind::kUnscheduled});
}

void BestOfJobs::Change(std::string_view job_id, uint32_t task_index) {
  std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_id);
  if (job == jobs_.end()) return;
  job->second.version = ++versions_;
  Drop(job->second, {task_index, Kind::kBest});
  Drop(job->second, {task_index, Kind::kUnscheduled});
}

void BestOfJobs::Forget(std::string_view job_id) {
  std::lock_guard lock(mutex_);
  const auto job = jobs_.find(job_id);
  if (job == jobs_.end()) return;
  answers_ -= job->second.answers.size();
  jobs_.erase(job);
}

void BestOfJobs::ForgetAll() {
  std::lock_guard lock(mutex_);
  jobs_.clear();
  answers_ = 0;
}

}  // namespace kiln::store
