// A job as a file of trace events (trace_events.h): a group of lanes for each worker, with a lane
// for each of its slots and a slice for each trial, and a group for the job, with its rounds and
// with counters of its trials by where they are.
//
// Memory is bounded however many trials there are: events wait in a window of kWindow, in which
// they are brought into the order of their begin, and trials come in the order of their commit. A
// worker has as many lanes as it had calls at once. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <queue>
#include <string>
#include <vector>

#include "client/view/trace_events.h"
#include "client/view/trial_steps.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

class JobTrace {
 public:
  struct Options {
    // True: slices have the phases of the calls within them.
    bool with_phases = true;
    // The rounds of the job, in order.
    std::vector<v1::Round> rounds = {};
  };

  // `events` outlives this object.
  JobTrace(const std::string& job_id, Options options, TraceEvents& events);

  // Records come in the order of their commit. One without instants counts, and is not shown.
  void Add(const v1::Record& record);
  // Writes what waits. The events are then complete, and not finished.
  void Finish();

  int64_t trials() const { return trials_; }
  int64_t without_instants() const { return without_instants_; }

 private:
  static constexpr size_t kWindow = 8192;
  static constexpr int kJobGroup = 1;

  // A trial is in one of these places.
  enum Place { kNowhere = -1, kToBuilder, kBuild, kToRunner, kRun, kCommit, kPlaces };

  // The queue holds it until it is written.
  struct Event {
    int64_t at_us = 0;
    // A trial that goes from one place to the next, if there are no steps.
    Place from = kNowhere, to = kNowhere;
    // A call and its phases.
    std::vector<TrialStep> steps = {};
    std::string worker = {};
    uint32_t trial = 0, task = 0;
    std::string error = {}, trace_id = {};

    // The queue has the earliest event on top.
    bool operator<(const Event& other) const { return at_us > other.at_us; }
  };

  struct Worker {
    int group = 0;
    // The end of the last slice of each lane.
    std::vector<int64_t> ends_us;
  };

  void Push(Event event);
  void Write(const Event& event);
  void WriteCall(const Event& event);
  void WriteCounter(int64_t at_us);
  void WriteRounds(int64_t at_us);
  Worker& WorkerOf(const Event& event);
  int LaneOf(Worker& worker, const TrialStep& call);

  const std::string job_id_;
  const bool with_phases_;
  std::deque<v1::Round> rounds_;
  TraceEvents& events_;
  std::priority_queue<Event> waiting_;
  // Key: "builder b1".
  std::map<std::string, Worker> workers_;
  int64_t trials_ = 0, without_instants_ = 0;
  int64_t in_place_[kPlaces] = {};
  int64_t counted_us_ = 0, last_us_ = 0;
  bool is_counter_old_ = false;
  // The end of the last round that was written; 0: there was none.
  int64_t round_end_us_ = 0;
};

}  // namespace kiln::client
