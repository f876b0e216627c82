// Where the time of a job's trials went: p50 and p90 of each part.
#pragma once

#include <string>
#include <vector>

#include "proto/scheduler.pb.h"

namespace kiln::client {

class TimingTable {
 public:
  // Failed trials count for what they went through; those that were stopped early, too.
  void Add(const v1::TrialResult& result);

  // elapsed_s: of the whole job; 0 = not known.
  std::string ToString(double elapsed_s) const;
  std::string ToJson() const;  // {"parts":{"load":{"p50_s":..,"p90_s":..,"trials":..},..},..}

 private:
  struct Part {
    std::string name, indent;
    std::vector<double> seconds;
  };
  std::vector<double>& PartOf(const std::string& name, const std::string& indent);

  std::vector<Part> parts_;  // in the order of first appearance
  int64_t trials_ = 0, builds_ = 0;
  double build_s_ = 0, run_s_ = 0;  // sums
};

}  // namespace kiln::client
