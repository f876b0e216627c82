// The answers of the scheduler's pages, as JSON. Each answer is bounded: lists have limits, and
// what takes long is read in parts, over several answers.
//
// The queries of the store that an answer makes: ListJobs with a limit, GetJob, what a job's status
// takes (Jobs::StatusOf), RoundsOfJob from the last round that is known, LoadUnfinishedJobs, Ids
// and Records of a snapshot (the next records of a job; records by id), GetRecord, BestRecords of
// one computation and target, and the best 50 records of one computation.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "proto/tracker.pb.h"
#include "scheduler/pages/job_statuses.h"
#include "scheduler/pages/json.h"
#include "scheduler/pages/recent.h"
#include "scheduler/pages/trial_digest.h"
#include "scheduler/service/concurrency_limiter.h"
#include "scheduler/words/why.h"
#include "store/store.h"

namespace kiln::scheduler {

// Thread-safe.
class Pages {
 public:
  struct Options {
    // Reads the status of a job.
    ReadStatus read_status;
    // Asks the tracker for its workers. Null: they are not known.
    std::function<StatusOr<v1::ListReply>()> list_workers;
    std::string version;
    // Outlives the pages.
    Clock* clock = &Clock::Real();
    // An answer reads statuses that are not known for so long; further ones come with the next
    // answer.
    absl::Duration patience = absl::Milliseconds(30);
    // Records that an answer adds to what is known of a job's trials.
    uint32_t records_at_once = 1'000;
    // Jobs whose trials are known at a time.
    size_t digests = 32;
    // So old may be the answer of the tracker, and the list of unfinished jobs.
    absl::Duration farm_age = absl::Seconds(1);
    ConcurrencyLimiter::Options programs = {
        .what = "text of a program", .at_work = 2, .in_line = 16, .longest = absl::Seconds(5)};
  };

  static constexpr uint32_t kMostJobs = 500, kDefaultJobs = 50;
  // Unfinished jobs that the queue and the reasons know.
  static constexpr size_t kMostUnfinished = 200;
  static constexpr uint32_t kMostRecords = 50;
  static constexpr size_t kMostWorkloads = 300;

  // The store outlives this object.
  Pages(store::Store& store, Options options);

  // Sets the port of the scheduler's RPCs, which the commands on the pages name; 0 = not known.
  void SetSchedulerPort(int port) { scheduler_port_ = port; }

  // Port and version of the scheduler.
  Json About() const;
  // The newest jobs. A job whose status is not known yet has "partial": true, and so has the
  // answer.
  StatusOr<Json> Jobs(uint32_t limit);
  // NotFound for these three if there is no such job.
  StatusOr<Json> Job(const std::string& job_id);
  StatusOr<Json> Curve(const std::string& job_id);
  // A page of trials. `order` is "newest", "oldest" or "best"; "best" has one page.
  StatusOr<Json> Trials(const std::string& job_id, std::string_view order, uint32_t page);
  StatusOr<Json> Queue();
  // An error of the tracker is a part of the answer.
  Json Fleet();
  // The best record of each computation that the newest jobs tuned.
  StatusOr<Json> Workloads();
  // The best records of one computation, by its workload id, or of a workload key.
  StatusOr<Json> Records(const std::string& workload);
  // `name` is a record's id or JOB/TRIAL.
  StatusOr<Json> Record(std::string_view name);
  StatusOr<Json> RecordText(std::string_view name, std::string_view form,
                            const std::function<bool()>& gone);
  // The status of a job for an event.
  StatusOr<std::shared_ptr<const SeenJob>> Seen(const std::string& job_id);

  store::Store& store() const { return store_; }

 private:
  struct Trialed {
    std::mutex mutex;
    TrialDigest digest;  // guarded by the mutex
  };
  using Look = std::function<Status(const TrialDigest& digest, bool complete)>;

  double NowS() const;
  // Reads on in the trials of a job that has `trials` of them, and shows what is known.
  Status LookAtTrials(const std::string& job_id, uint64_t trials, const Look& look);
  // Returns the farm's answers, at most farm_age old.
  StatusOr<std::shared_ptr<const FarmAnswers>> Farm();
  StatusOr<FarmAnswers> AskFarm();
  StatusOr<store::Record> FindRecord(std::string_view name);
  StatusOr<store::Record> FindTrial(const std::string& job_id, uint32_t trial);
  StatusOr<std::vector<store::Record>> PageOfTrials(const std::string& job_id, int64_t first_id);
  StatusOr<std::vector<store::Record>> RecordsById(const std::vector<int64_t>& ids);
  std::string DescriptionOf(const store::Record& record);

  store::Store& store_;
  const Options options_;
  Clock& clock_;
  JobStatuses statuses_;
  Recent<Trialed> trials_;
  ConcurrencyLimiter programs_;
  std::atomic<int> scheduler_port_{0};

  std::mutex farm_mutex_;
  // All are guarded by farm_mutex_.
  std::shared_ptr<const FarmAnswers> farm_;
  Status tracker_error_;
  double farm_read_at_s_ = 0;
};

}  // namespace kiln::scheduler
