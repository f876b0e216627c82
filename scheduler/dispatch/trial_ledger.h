// Records the state of each trial of a job, from Submit to Next, and the end of the job:
//
//   Begin -> in hand -> measured -> being written -> finished -> Next
//               |          |
//               +----------+-> Abandon
//
// If a task begins with the schedule that was chosen without measuring, the results of its other
// trials are held back until that schedule has its own result: a job that is stopped at any moment
// never leaves records of a task without it.
//
// Exactly one of Next and Abandon returns each trial, unless the job ends before. Two threads wait
// here: the thread of the search, for outcomes and races, and the writer (result_writer.h), for
// results.
//
// Thread-safe: one mutex, under which nothing but the writer's `due` is called.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <vector>

#include "base/status.h"
#include "scheduler/dispatch/dispatch_items.h"
#include "search/tuning/tune.h"

namespace kiln::scheduler {

class TrialLedger {
 public:
  // ---- the thread of the search
  InFlightTrial Begin(search::Trial trial);
  // Behaves like Measurer::Next: returns an error when the job can't go on, Cancelled after Stop.
  StatusOr<std::optional<search::Outcome>> Next(double until_s);
  // Behaves like Measurer::Abandon.
  std::vector<uint32_t> Abandon(int task);
  // Returns those of `corrections` and of the corrections kept from earlier calls whose trials Next
  // has returned. Keeps the others.
  std::vector<search::Correction> Deliverable(std::vector<search::Correction> corrections);
  void BeginRaces(size_t count);
  // Waits until all races have ended. Returns the same errors as Next.
  Status WaitForRaces();

  // ---- the work of workers
  // Tells whether the trial's result is wanted.
  bool IsInFlight(uint64_t serial) const;
  // Does nothing if the trial was abandoned.
  void AddResult(uint64_t serial, MeasuredTrial measured);
  void EndRace();
  // Returns true while the search goes on and outcomes are wanted.
  bool IsOpen() const;

  // ---- the writer
  struct Batch {
    std::vector<MeasuredTrial> trials;
    bool closing = false;  // no more will come
  };
  using TimePoint = std::chrono::steady_clock::time_point;
  // Returns the results that were measured since the last call. Waits until there is a result,
  // until Close, until `due` returns true (asked again at each PokeWriter), or until the time.
  Batch TakeMeasured(const std::function<bool()>& due, std::optional<TimePoint> until);
  void PokeWriter();
  // Notes that the results are in the store.
  void Finish(std::span<MeasuredTrial> written);

  // ---- any thread
  void Wake();
  // Sets the reason why the job can't go on. The first one counts.
  void Fail(Status status);
  // No outcome is wanted after this.
  void Stop();
  // No more results come after this.
  void Close();

 private:
  struct InFlight {
    int task = 0;
    uint32_t number = 0;
    std::stop_source abandoned;
  };

  // Tells whether the result has to wait for the result of the task's first trial. Lock held.
  bool IsHeldBack(int task, uint64_t serial) const;

  bool HasEnded() const { return stopping_ || !failure_.ok(); }  // lock held
  Status EndCause() const;                                       // lock held
  bool IsReturned(uint32_t number) const;                        // lock held

  mutable std::mutex mutex_;
  std::condition_variable to_search_;     // the thread of the search waits on it
  std::condition_variable to_writer_;     // the writer waits on it
  std::map<uint64_t, InFlight> in_hand_;  // key: serial number
  uint64_t serials_ = 0;                  // the last serial number that was given out
  std::set<int> begun_;                   // tasks that have a trial
  std::map<int, uint64_t> first_;  // serial of each task's first trial, if others wait for it
  std::vector<MeasuredTrial> held_back_;
  std::vector<MeasuredTrial> measured_;
  std::set<uint32_t> being_written_;  // numbers of trials
  std::deque<search::Outcome> finished_;
  std::vector<search::Correction> kept_back_;
  size_t open_races_ = 0;
  Status failure_;
  bool stopping_ = false;
  bool closing_ = false;
  bool woken_ = false;
};

}  // namespace kiln::scheduler
