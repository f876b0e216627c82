#include "scheduler/service/watch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "scheduler/service/told_status.h"
#include "scheduler/service/watch_start.h"
#include "store/wire/job_message.h"
#include "store/wire/record_message.h"

namespace kiln::scheduler {
namespace {

// Longest time until a watcher's end, or a change that is not in the store, is noticed.
constexpr absl::Duration kLook = absl::Milliseconds(250);
// While results come, the status is read so often.
constexpr absl::Duration kStatusInterval = absl::Seconds(1);
constexpr absl::Duration kShortestResultsInterval = absl::Milliseconds(50);
constexpr absl::Duration kResultsIntervalOfWatcher = absl::Milliseconds(3);

class Watch {
 public:
  Watch(store::Store& store, const Jobs& jobs, const EventHub& events, const WatchOptions& options)
      : store_(store), jobs_(jobs), events_(events), options_(options), counted_(events) {}

  Status Run() {
    while (true) {
      const uint64_t seen = events_.version(options_.job_id);
      if (IsStatusDue()) {
        KILN_ASSIGN_OR_RETURN(const bool final, SendAll());
        if (final) return OkStatus();
      } else {
        KILN_RETURN_IF_ERROR(SendRecords());
      }
      KILN_RETURN_IF_ERROR(Wait(seen));
    }
  }

 private:
  bool IsStatusDue() const {
    return !sent_any_ || events_.status_version(options_.job_id) != status_version_ ||
           absl::Now() - status_time_ >= kStatusInterval;
  }

  // Returns whether the job has ended.
  StatusOr<bool> SendAll() {
    status_version_ = events_.status_version(options_.job_id);
    status_time_ = absl::Now();
    // The state is read before the records: once it is final, no more records come.
    KILN_ASSIGN_OR_RETURN(const store::JobRow job, store_.GetJob(options_.job_id));
    KILN_ASSIGN_OR_RETURN(const v1::JobStatus status, ToldStatus(jobs_, job));
    unsent_ = status;
    if (!sent_any_) {
      KILN_ASSIGN_OR_RETURN(last_id_, IdBeforeTrial(store_, options_.job_id, options_.from_trial));
    }
    KILN_RETURN_IF_ERROR(SendRecords());
    KILN_RETURN_IF_ERROR(SendRounds());
    const bool final = store::IsFinal(job.state);
    const bool has_news = final || Changed(status);
    unsent_.reset();
    if (!has_news) return final;
    unsent_ = status;
    KILN_RETURN_IF_ERROR(Send(nullptr));
    return final;
  }

  Status SendRecords() {
    store::RecordFilter filter;
    filter.job_id = options_.job_id;
    filter.include_errors = true;
    filter.after_id = last_id_;
    return store_.ForEachRecord(filter, [&](const store::Record& record) -> Status {
      last_id_ = record.id;
      results_time_ = absl::Now();
      if (record.trial < options_.from_trial) return CheckAlive();
      return Send(&record);
    });
  }

  Status SendRounds() {
    KILN_ASSIGN_OR_RETURN(const std::vector<store::RoundRow> rounds,
                          store_.RoundsOfJob(options_.job_id, next_round_));
    for (const store::RoundRow& round : rounds) {
      next_round_ = round.number + 1;
      KILN_RETURN_IF_ERROR(Send(nullptr, &round));
    }
    return OkStatus();
  }

  // Tells whether the status has changed in a fact that no record tells.
  bool Changed(const v1::JobStatus& status) const {
    return !sent_any_ || status.state() != sent_.state() || status.message() != sent_.message() ||
           status.device() != sent_.device() || status.phase() != sent_.phase() ||
           status.notices_size() != sent_.notices_size() ||
           status.next_task() != sent_.next_task() || KnownStates(status) != KnownStates(sent_) ||
           Tuners(status) != Tuners(sent_) || BestRecords(status) != BestRecords(sent_) ||
           status.waiting_for_workers() != sent_.waiting_for_workers();
  }

  // Returns the best candidates and their costs. The final race may change either.
  static std::vector<std::pair<int64_t, double>> BestRecords(const v1::JobStatus& status) {
    std::vector<std::pair<int64_t, double>> best;
    for (const v1::TaskStatus& task : status.tasks()) {
      best.emplace_back(task.best_record_id(), task.best_cost_s());
    }
    return best;
  }

  // Returns the jobs that tune the tasks.
  static std::vector<std::string> Tuners(const v1::JobStatus& status) {
    std::vector<std::string> tuners;
    for (const v1::TaskStatus& task : status.tasks()) tuners.push_back(task.tuned_by_job());
    return tuners;
  }

  static uint64_t KnownStates(const v1::JobStatus& status) {
    uint64_t states = 0;
    for (const v1::TaskStatus& task : status.tasks()) states += task.known_states();
    return states;
  }

  // Sends the status that was read last along, once.
  Status Send(const store::Record* record, const store::RoundRow* round = nullptr) {
    KILN_RETURN_IF_ERROR(CheckOpen());
    v1::JobEvent event;
    if (unsent_.has_value()) {
      *event.mutable_status() = *std::exchange(unsent_, std::nullopt);
      if (sent_any_) DropDagTexts(*event.mutable_status());
    }
    if (record != nullptr) *event.mutable_record() = store::RecordMessage(*record);
    if (round != nullptr) *event.mutable_round() = store::RoundMessage(*round);
    if (!options_.write(event)) return Gone();
    sent_any_ = true;
    if (event.has_status()) sent_ = std::move(*event.mutable_status());
    return OkStatus();
  }

  Status Wait(uint64_t seen) {
    const absl::Time start = absl::Now();
    if (start - results_time_ < kShortestResultsInterval) {
      absl::SleepFor(ResultsInterval(events_.watchers()));
      if (events_.version(options_.job_id) != seen) return CheckAlive();
    }
    while (events_.Wait(options_.job_id, seen, kLook) == seen) {
      KILN_RETURN_IF_ERROR(CheckAlive());
      if (absl::Now() - start >= kLook * 2) break;
    }
    return CheckAlive();
  }

  Status CheckAlive() const {
    if (options_.cancelled()) return Gone();
    return CheckOpen();
  }
  // Costs less than a look whether the watcher has gone. A write shows that as well.
  Status CheckOpen() const {
    if (events_.closed()) return Unavailable("the scheduler is stopping; watch again");
    return OkStatus();
  }
  static Status Gone() { return Cancelled("the watcher has disconnected"); }

  store::Store& store_;
  const Jobs& jobs_;
  const EventHub& events_;
  const WatchOptions& options_;
  const EventHub::Watcher counted_;
  int64_t last_id_ = 0;
  uint32_t next_round_ = 0;
  uint64_t status_version_ = 0;
  absl::Time status_time_ = absl::InfinitePast();   // when the status was read last
  absl::Time results_time_ = absl::InfinitePast();  // when the last record was sent
  std::optional<v1::JobStatus> unsent_;             // a status that no event has carried yet
  bool sent_any_ = false;
  v1::JobStatus sent_;  // the last status that was sent
};

}  // namespace

absl::Duration ResultsInterval(int watchers) {
  return std::clamp(watchers * kResultsIntervalOfWatcher, kShortestResultsInterval, kLook);
}

Status WatchJob(store::Store& store, const Jobs& jobs, const EventHub& events,
                const WatchOptions& options) {
  return Watch(store, jobs, events, options).Run();
}

}  // namespace kiln::scheduler
