// Where each trial of a job is, from Submit to Next, and what ends the job:
//
//   Begin -> in hand -> measured -> being written -> finished -> Next
//               |          |
//               +----------+-> Abandon
//
// Results of a task that begins with the schedule that was chosen without measuring are held back
// until that one has its own: a job that is stopped at any moment never leaves
// records of a task without it.
//
// Exactly one of Next and Abandon has each trial, unless the job ends before. Here wait the thread
// of the search, for outcomes and races, and the writer (result_writer.h), for results.
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
#include "scheduler/dispatch_items.h"
#include "search/tuning/tune.h"

namespace kiln::scheduler {

class TrialLedger {
 public:
  // ---- the thread of the search
  TrialInHand Begin(search::Trial trial);
  // As Measurer::Next: an error when the job can't go on, Cancelled after Stop.
  StatusOr<std::optional<search::Outcome>> Next(double until_s);
  // As Measurer::Abandon.
  std::vector<uint32_t> Abandon(int task);
  // Of these and of those kept back before, the corrections of trials that Next has returned.
  std::vector<search::Correction> Deliverable(std::vector<search::Correction> corrections);
  void BeginRaces(size_t count);
  // Until all have ended. Errors as Next.
  Status WaitForRaces();

  // ---- the lanes of workers
  // Whether its result is wanted.
  bool IsInHand(uint64_t serial) const;
  // Does nothing when it was abandoned.
  void AddResult(uint64_t serial, MeasuredTrial measured);
  void EndRace();
  // The search goes on and outcomes are wanted.
  bool IsOpen() const;

  // ---- the writer
  struct Batch {
    std::vector<MeasuredTrial> trials;
    bool closing = false;  // no more will come
  };
  using TimePoint = std::chrono::steady_clock::time_point;
  // What was measured since the last call. Waits until there is something, until Close, until `due`
  // (asked again at each PokeWriter), or until the time.
  Batch TakeMeasured(const std::function<bool()>& due, std::optional<TimePoint> until);
  void PokeWriter();
  // They are in the store.
  void Finish(std::span<MeasuredTrial> written);

  // ---- any thread
  void Wake();
  // Why the job can't go on; the first one counts.
  void Fail(Status status);
  // No outcome is wanted any more.
  void Stop();
  // Nothing more is measured.
  void Close();

 private:
  struct InHand {
    int task = 0;
    uint32_t number = 0;
    std::stop_source abandoned;
  };

  // Lock held. Is the result to wait for that of the task's first trial?
  bool IsHeldBack(int task, uint64_t serial) const;

  bool HasEnded() const { return stopping_ || !failure_.ok(); }  // lock held
  Status WhyEnded() const;                                       // likewise
  bool IsReturned(uint32_t number) const;                        // likewise

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, InHand> in_hand_;  // by serial number
  uint64_t serials_ = 0;                // given out
  std::set<int> begun_;                 // tasks
  std::map<int, uint64_t> first_;  // by task: serial of its first trial, where others wait for it
  std::vector<MeasuredTrial> held_back_;
  std::vector<MeasuredTrial> measured_;
  std::set<uint32_t> being_written_;  // numbers
  std::deque<search::Outcome> finished_;
  std::vector<search::Correction> kept_back_;
  size_t open_races_ = 0;
  Status failure_;
  bool stopping_ = false;
  bool closing_ = false;
  bool woken_ = false;
};

}  // namespace kiln::scheduler
