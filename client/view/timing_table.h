// Shows how the time of a job's trials was spent: p50 and p90 of each part.
#pragma once

#include <string>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::client {

class TimingTable {
 public:
  // Failed trials and trials that were stopped early count for the phases that they reached.
  void Add(const v1::TrialResult& result);

  // `elapsed_s` is that of the whole job; 0 = not known.
  std::string ToString(double elapsed_s) const;
  // Returns {"parts":{"load":{"p50_s":..,"p90_s":..,"trials":..},..},..}.
  std::string ToJson() const;

 private:
  struct Part {
    std::string name, indent;
    std::vector<double> seconds;
  };
  std::vector<double>& PartOf(const std::string& name, const std::string& indent);

  // In the order of first appearance.
  std::vector<Part> parts_;
  int64_t trials_ = 0, builds_ = 0;
  // Sums over all trials.
  double build_s_ = 0, run_s_ = 0;
};

}  // namespace kiln::client
