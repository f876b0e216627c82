// The store as the daemon sees it: every result, round and change of a job that goes in is counted,
// for a monitoring system.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/metrics/metrics.h"
#include "store/store_decorator.h"

namespace kiln::scheduler {

// Thread-safe. Costs some hundred nanoseconds a record, and a lock a commit.
//
// The values of labels are few: kinds of targets beyond kMostTargets count as "other", and so do
// users beyond kMostUsers.
class CountedStore : public store::StoreDecorator {
 public:
  static constexpr size_t kMostTargets = 8;
  static constexpr size_t kMostUsers = 200;

  // `metrics`, `clock` and `store` outlive this object.
  CountedStore(store::Store& store, Metrics& metrics, Clock& clock = Clock::Real());

  using store::StoreDecorator::AddJob;
  using store::StoreDecorator::AddRecords;

  Status AddJob(const store::JobRow& job, std::span<const store::TaskRow> tasks) override;
  Status UpdateJobState(std::string_view job_id, store::JobState state, std::string_view message,
                        int64_t now_ms) override;
  Status ReopenJob(std::string_view job_id) override;
  // Learns which jobs there are; the scheduler loads them when it starts.
  StatusOr<std::vector<store::JobRow>> LoadUnfinishedJobs() override;
  StatusOr<std::vector<int64_t>> AddRecords(std::span<const store::Record> records,
                                            std::span<const store::ReferenceCost> costs) override;
  StatusOr<uint32_t> AddRound(const store::RoundRow& row) override;

 protected:
  Status Around(Access access, const std::function<Status()>& call) override;

 private:
  struct Job {
    store::JobState state = store::JobState::kQueued;
    std::string user;
  };
  // The counts of one kind of target.
  struct OfTarget {
    std::array<Counter, store::kNumErrorKinds> trials;
    Histogram run_s;
  };

  // The caller of the next four holds the lock.
  void Count(const store::Record& record);
  const OfTarget& CountsOf(const std::string& target);
  const Counter& DeviceSecondsOf(const std::string& job_id);
  void Note(const store::JobRow& job);
  void Collect(MetricSheet& sheet);

  Metrics& metrics_;
  Clock& clock_;
  const Histogram commit_s_, build_s_, build_wait_s_, run_wait_s_, search_s_;
  const Counter errors_;
  std::map<store::JobState, Counter> ended_;

  std::mutex mutex_;
  // All of these are guarded by mutex_. Jobs that have not ended, by id.
  std::map<std::string, Job, std::less<>> jobs_;
  // The key is the kind of the target: "llvm".
  std::map<std::string, OfTarget, std::less<>> targets_;
  std::map<std::string, Counter, std::less<>> device_seconds_;

  const std::shared_ptr<void> collector_;
};

}  // namespace kiln::scheduler
