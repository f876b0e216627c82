// The best record of each task of jobs that get records, and its newest record without a schedule,
// kept from one question to the next, so that a status asks the database only for what has changed.
//
// An answer is kept until a write may change it. The owner tells of each write after its commit,
// and a read says with which version of the job it began: an answer that a write has overtaken is
// not kept. Thread-safe. Memory: at most two records for each task of at most kMostJobs jobs, and
// no more than kMostAnswers records together, of some KiB each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "store/record.h"

namespace kiln::store {

class BestOfJobs {
 public:
  static constexpr size_t kMostJobs = 2'000;
  static constexpr size_t kMostAnswers = 20'000;

  enum class Kind { kBest, kUnscheduled };
  struct Question {
    Kind kind = Kind::kBest;
    std::string job_id;
    uint32_t task_index = 0;
  };
  // The record, or the fact that there is none.
  using Answer = std::optional<Record>;

  // None: the database has to be asked.
  std::optional<Answer> Find(const Question& question) const;
  // Returns the version of the job that a read of the database sees, or a newer one sees. None:
  // the job is not kept.
  std::optional<uint64_t> BeginRead(std::string_view job_id) const;
  // Keeps what a read has found, unless the job has changed since BeginRead.
  void Keep(const Question& question, std::optional<uint64_t> version, const Answer& answer);

  // ---- the writer
  bool Knows(std::string_view job_id) const;
  // Answers of the job are kept from now on. Drops all others if there are too many.
  void Begin(const std::string& job_id);
  // These do nothing for jobs that are not known. `record` is a new record.
  void Add(const Record& record);
  // Records of the task have changed.
  void Change(std::string_view job_id, uint32_t task_index);
  void Forget(std::string_view job_id);
  void ForgetAll();

 private:
  using Key = std::pair<uint32_t, Kind>;
  struct Job {
    uint64_t version = 0;
    std::map<Key, Answer> answers;
  };

  void Drop(Job& job, const Key& key);  // lock held

  mutable std::mutex mutex_;
  std::map<std::string, Job, std::less<>> jobs_;
  size_t answers_ = 0;     // of all jobs
  uint64_t versions_ = 0;  // the last version that was given
};

}  // namespace kiln::store
