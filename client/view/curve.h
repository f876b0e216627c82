// Shows how fast a job found its best programs: the best cost so far against the trials or the
// time, as text and as a picture.
//
// Pure functions, and a builder that keeps only the points at which the curve changes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::client {

struct CurvePoint {
  // Number of the job's trials, this one included.
  uint32_t trials = 0;
  // Whole seconds since the job's first trial.
  double elapsed_s = 0;
  // Best cost after this trial.
  double best_s = 0;
};

struct Curve {
  std::string name;
  // The trials that improved the best cost, and the last trial; best_s falls. Empty: no trial
  // succeeded.
  std::vector<CurvePoint> points = {};
};

// Builds the curve of one job: the sum of weight x best of its tasks, or the best of one task. If
// tasks are variants of one computation, the fastest variant counts. Costs are the first readings
// of each trial; a trial that was stopped early does not count.
class CurveBuilder {
 public:
  CurveBuilder(std::string name, const v1::JobStatus& job, std::optional<int> task);

  // Takes the records in the order of their commit.
  void Add(const v1::Record& record);
  Curve Finish();

 private:
  struct Group {
    double weight = 1;
    std::optional<double> best_s;
  };

  std::optional<double> Total() const;

  Curve curve_;
  // -1: the task does not count.
  std::vector<int> group_of_task_;
  std::vector<Group> groups_;
  CurvePoint last_;
  // Timestamp of the first trial.
  int64_t first_s_ = 0;
};

enum class CurveAxis { kTrials, kSeconds };

// Returns a table of the points of each curve, with the gain of each, and a plot of `columns`
// columns (0: 80). Ends with a newline.
std::string CurveText(const std::vector<Curve>& curves, CurveAxis axis, int columns);

// Returns a picture in SVG: one line for each curve, the latency on a logarithmic axis. At least
// one curve must have a point.
std::string CurveSvg(const std::vector<Curve>& curves, CurveAxis axis, const std::string& title);

}  // namespace kiln::client
