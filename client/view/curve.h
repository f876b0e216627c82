// How fast a job found its best programs: the cost of its best so far against its trials or the
// time, as text and as a picture.
//
// Pure functions, and a builder that keeps no more than the points where something changes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::client {

struct CurvePoint {
  uint32_t trials = 0;   // of the job, this one included
  double elapsed_s = 0;  // since its first trial, in whole seconds
  double best_s = 0;     // after that trial
};

struct Curve {
  std::string name;
  // Where the best changes, and the last trial; best_s falls. Empty: nothing was right.
  std::vector<CurvePoint> points = {};
};

// Of one job: the sum of weight x best of its tasks, or the best of one of them. Of tasks that are
// variants of one computation the fastest counts. Costs are the first readings of each trial; what
// was stopped early counts for nothing.
class CurveBuilder {
 public:
  CurveBuilder(std::string name, const v1::JobStatus& job, std::optional<int> task);

  // In the order in which they were committed.
  void Add(const v1::Record& record);
  Curve Finish();

 private:
  struct Group {
    double weight = 1;
    std::optional<double> best_s;
  };

  std::optional<double> Total() const;

  Curve curve_;
  std::vector<int> group_of_task_;  // -1: does not count
  std::vector<Group> groups_;
  CurvePoint last_;
  int64_t first_s_ = 0;  // timestamp of the first trial
};

enum class CurveAxis { kTrials, kSeconds };

// A table of the points of each curve, with how much each gained, and a plot of `columns` columns
// (0: 80). Ends with a newline.
std::string CurveText(const std::vector<Curve>& curves, CurveAxis axis, int columns);

// A picture in SVG: one line for each curve, the latency on a logarithmic axis. At least one curve
// must have a point.
std::string CurveSvg(const std::vector<Curve>& curves, CurveAxis axis, const std::string& title);

}  // namespace kiln::client
