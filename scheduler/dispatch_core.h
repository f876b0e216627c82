// The insides of the dispatcher (dispatch.h), in three parts:
//
//   dispatch.cc         in and out, building, measuring
//   dispatch_again.cc   further readings of the best: leaders while a device is idle, finals
//   dispatch_commit.cc  results on their way to the store and the search
//
// One mutex for all of it; the pools, the leaders and the store have their own, and call nothing of
// this while they hold it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "proto/builder.pb.h"
#include "proto/runner.pb.h"
#include "scheduler/dispatch.h"
#include "scheduler/worker_calls.h"
#include "scheduler/worker_pool.h"

namespace kiln::scheduler {

// A trial, the reference of a task, or finalists on their way.
struct TrialItem : WorkItem {
  bool reference = false;
  std::shared_ptr<Race> race;  // null: of no finalists
  int entry = -1;              // of the race: to be built; -1: all of it, to be measured
  int task = 0;
  search::Trial trial;
  uint64_t serial = 0;         // of a trial, as numbers may be given out again
  std::stop_source abandoned;  // nothing is wanted of it any more
  std::string steps;
  int attempts = 0;  // failed ones
  std::shared_ptr<const v1::Artifact> artifact;
  double build_s = 0;
  v1::TrialTimes build_times;
  std::string builder;
};
using TrialItemPtr = std::unique_ptr<TrialItem>;

inline TrialItemPtr AsTrial(WorkItemPtr item) {
  return TrialItemPtr(static_cast<TrialItem*>(item.release()));
}

// For people.
std::string NameOf(const TrialItem& item);

struct Measured {
  search::Trial trial;
  store::Record record;
  double reference_cost_s = 0;                   // > 0: to be stored
  std::shared_ptr<const v1::Artifact> artifact;  // when it may lead
};

class Dispatcher::Core {
 public:
  Core(Job job, const DispatchOptions& options, LeaseSource& builders, LeaseSource& runners,
       LeasedWorker first_runner, store::Store& store, std::function<void()> committed);
  ~Core();

  int capacity() const { return builders_.usable() + runners_.usable() + options_.queued; }
  void Submit(search::Trial trial);
  StatusOr<std::optional<search::Outcome>> Next(double until_s);
  std::vector<uint32_t> Abandon(int task);
  void Wake();
  std::vector<search::Correction> TakeCorrections();
  Status MeasureAgain(std::vector<Finalists> lists, double until_s);
  Status EndIdleReadings();
  void Stop();
  BusyMeter::Reading busy() const;
  Waiting waiting() const;
  std::vector<std::string> notices() const;

 private:
  struct TaskState {
    DispatchTask facts;
    bool reference_requested = false;
    bool unlimited = false;  // no sample can be made: the reference may take what runners allow
    std::string notice;
    std::shared_ptr<const v1::Artifact> reference;  // null: not built yet
    std::vector<TrialItemPtr> waiting;              // built, for want of it
    bool reference_ran = false;
    int reference_failures = 0;
    bool other_inputs_fail = false;  // of the reference
  };

  // A trial that is neither measured nor given up.
  struct InHand {
    int task = 0;
    uint32_t number = 0;
    std::stop_source abandoned;
  };

  // Empty where nobody takes turns, or when stopped.
  Turns::Hold TakeTurn(Turns::Kind kind, std::stop_token stop);
  WorkerPool::Options PoolOptions(std::string name, int lanes) const;
  WorkerPool::Options RunnerOptions() const;
  Attempt Build(TrialItemPtr item, const LeasedWorker& lease, std::stop_token stop);
  void Built(TrialItemPtr item, const LeasedWorker& lease, v1::BuildReply reply);
  void ReferenceBuilt(const TrialItem& item, v1::BuildReply reply);
  Attempt Measure(TrialItemPtr item, const LeasedWorker& lease, std::stop_token stop);
  CallResult CallMeasure(const LeasedWorker& lease, v1::MeasureRequest& request,
                         std::shared_ptr<const v1::Artifact> reference, std::stop_token stop,
                         v1::MeasureReply* reply);
  v1::MeasureRequest RequestOf(int task, const v1::Artifact& artifact) const;  // lock held
  // As RequestOf, of one of the best; with other inputs if that is cheap; lock held.
  v1::MeasureRequest FinalRequestOf(int task, const v1::Artifact& artifact, bool idle) const;
  CallResult MeasureOneAgain(const LeasedWorker& lease, int task, const v1::Artifact& artifact,
                             bool idle, std::stop_token stop, v1::MeasureReply* reply);
  void RequestReference(int task);
  void BuildReference(int task);
  void ToRunners(TrialItemPtr item);
  // A finalist is built, or not.
  void EntryBuilt(TrialItemPtr item, v1::BuildReply reply);
  Attempt RunRace(TrialItemPtr item, const LeasedWorker& lease, std::stop_token stop);
  void EndRace();
  // While the runner would be idle.
  std::optional<Attempt> ReadLeader(const LeasedWorker& lease, std::stop_token stop);
  bool MayReadLeaders() const;
  void NoteReading(const LeaderBoard::Turn& turn, const std::string& device,
                   const v1::MeasureReply& reply);
  // The reference took too long.
  Attempt SampleInstead(TrialItemPtr item, const LeasedWorker& lease, const CallResult& result,
                        std::stop_token stop);
  std::string NoticeOf(const DispatchTask& task, bool too_long) const;
  void NoteReferenceFailure(const TrialItem& item, const Status& status);
  // The call failed: the item goes back, or is given up.
  Attempt Failed(TrialItemPtr item, const LeasedWorker& lease, const CallResult& result,
                 std::stop_token stop);
  void Finish(TrialItemPtr item, const LeasedWorker* runner, const v1::TrialResult& result,
              double reference_cost_s);
  store::Record RecordOf(const TrialItem& item) const;
  void CommitLoop();
  Status Commit(std::vector<Measured>& batch);  // sets the records' ids
  Status WriteLeaders();
  void AddLeader(Measured& measured);  // lock held
  void Fail(Status status);
  void WaitUntil(double until_s, std::unique_lock<std::mutex>& lock,
                 const std::function<bool()>& done);
  std::chrono::milliseconds ReferenceLimit() const;
  std::chrono::milliseconds BuildDeadline() const;
  std::chrono::milliseconds MeasureDeadline(bool with_reference) const;

  const Job job_;
  const DispatchOptions options_;
  store::Store& store_;
  const std::function<void()> committed_;
  WorkerCalls calls_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TaskState> tasks_;
  std::map<uint64_t, InHand> in_hand_;    // by serial number
  uint64_t serials_ = 0;                  // given out
  std::vector<Measured> measured_;        // not yet committed
  std::deque<search::Outcome> finished_;  // committed
  Status failure_;                        // why the job can't go on
  bool stopping_ = false;                 // no outcome is wanted any more
  bool closing_ = false;                  // nothing more is measured
  bool woken_ = false;
  bool idle_readings_ = false;                         // leaders are read
  std::vector<search::Correction> early_corrections_;  // of outcomes that Next has not returned
  size_t open_races_ = 0;
  std::map<std::string, search::DeviceDrift> drifts_;  // by device; only added to
  BusyMeter busy_;

  LeaderBoard leaders_;
  std::mutex writing_leaders_;  // what was taken from them is written before what is taken next

  std::thread committer_;
  WorkerPool builders_;  // these two last: their lanes use the rest
  WorkerPool runners_;
};

}  // namespace kiln::scheduler
