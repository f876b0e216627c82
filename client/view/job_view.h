// What is shown of a job while it runs: the state built from its events, as a table for a terminal
// and as plain lines for a pipe. No terminal, clock or RPC in here.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::client {

class JobView {
 public:
  // Takes an event in, and says what is new in plain lines: what earlier jobs found, an improvement
  // of a task, a failed trial of a kind not seen before, and a line of progress every tenth of the
  // trials and at the end. Of a job that turns knobs each trial has a line.
  std::vector<std::string> Observe(const v1::JobEvent& event);

  // What the user should know of how the job is done, as far as it was not taken before. They are
  // among the plain lines, too.
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }

  bool seen() const { return seen_; }  // one event at least
  const v1::JobStatus& status() const { return status_; }

  // How the live block is drawn.
  struct Frame {
    int columns = 80, rows = 24;  // what there is for it
    int number = 0;               // turns the spinner
    double since_event_s = 0;     // elapsed_s of the job's own clock is too coarse for a terminal
    bool color = false;
  };
  // The live block: a row per task, or of those that fit (task_window.h), then the totals; of a
  // very small terminal the totals alone.
  std::vector<std::string> Lines(const Frame& frame) const;
  // The totals and the state alone: what stays once the block is gone.
  std::vector<std::string> LastLines(const Frame& frame) const;

 private:
  void KeepKnown(v1::JobStatus status, std::vector<std::string>& lines);
  void ObserveRecord(const v1::Record& record, std::vector<std::string>& lines);
  std::optional<std::string> Improvement(const v1::Record& record);
  // Of a job that turns knobs (policies template.*): as autotvm's own progress bar.
  bool TurnsKnobs() const;
  std::string KnobTrial(const v1::Record& record) const;
  std::string Totals(double elapsed_s) const;
  std::vector<std::string> TaskLines(const Frame& frame, int rows) const;

  v1::JobStatus status_;
  bool seen_ = false;
  std::vector<std::optional<double>> best_s_;  // per task, from the records seen
  uint32_t seen_errors_ = 0;                   // bits: error kinds
  int seen_notices_ = 0;
  std::vector<std::string> notices_;  // not taken
  // At the last line of progress.
  uint32_t said_trials_ = 0;
  bool said_estimate_ = false;
  double said_progress_ = 0;
  std::string last_wait_;
  std::string last_trial_;  // of a job that turns knobs
};

}  // namespace kiln::client
