// Shows a job while it runs: collects the state from the job's events, and returns it as a table
// for a terminal and as plain lines for a pipe. Knows no terminal, clock or RPC.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::client {

class JobView {
 public:
  // Takes an event, and returns its news in plain lines: results of earlier jobs, an improvement of
  // a task, a failed trial of a kind not seen before, and a line of progress every tenth of the
  // trials and at the end. If the job turns knobs, each trial has a line.
  std::vector<std::string> Observe(const v1::JobEvent& event);

  // Returns the notices about the job that were not taken before. They are among the plain lines,
  // too.
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }

  // Returns whether there was an event.
  bool seen() const { return seen_; }
  const v1::JobStatus& status() const { return status_; }

  // Size and state of the live block.
  struct Frame {
    // Room for the block.
    int columns = 80, rows = 24;
    // Turns the spinner.
    int number = 0;
    // Seconds since the last event: the job's own elapsed_s is too coarse for a terminal.
    double since_event_s = 0;
    bool color = false;
  };
  // Returns the live block: a row per task, or per task that fits (task_window.h), then the totals;
  // only the totals on a very small terminal.
  std::vector<std::string> Lines(const Frame& frame) const;
  // Returns the totals and the state, which stay when the block is gone.
  std::vector<std::string> LastLines(const Frame& frame) const;

 private:
  void KeepKnown(v1::JobStatus status, std::vector<std::string>& lines);
  void ObserveRecord(const v1::Record& record, std::vector<std::string>& lines);
  std::optional<std::string> Improvement(const v1::Record& record);
  // Returns whether the job turns knobs (policies template.*). Its lines look like autotvm's
  // progress bar.
  bool TurnsKnobs() const;
  std::string KnobTrial(const v1::Record& record) const;
  std::string Totals(double elapsed_s) const;
  std::vector<std::string> TaskLines(const Frame& frame, int rows) const;

  v1::JobStatus status_;
  bool seen_ = false;
  // Best cost per task, from the records seen.
  std::vector<std::optional<double>> best_s_;
  // Bit set of error kinds.
  uint32_t seen_errors_ = 0;
  int seen_notices_ = 0;
  // Notices that were not taken yet.
  std::vector<std::string> notices_;
  // State at the last line of progress.
  uint32_t printed_trials_ = 0;
  bool printed_estimate_ = false;
  double printed_progress_ = 0;
  std::string last_wait_;
  // Last trial of a job that turns knobs.
  std::string last_trial_;
};

}  // namespace kiln::client
