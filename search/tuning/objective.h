// The objective of a job: the function of latencies that it minimises. Each latency belongs to a
// group: one task, or several tasks that are alternatives for the same computation
// (task_scheduler.h).
//
// The value of every objective is in seconds, so that a latency target and a log line mean the same
// for all of them. Pure functions.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::search {

// A function that does not rise when a latency falls.
struct Objective {
  std::function<double(std::span<const double> latencies_s)> value;
  // Returns for each latency how much the value falls for each second that it falls. 0: that would
  // not help.
  std::function<std::vector<double>(std::span<const double> latencies_s)> slopes;
};

enum class ObjectiveKind {
  kWeightedSum,  // sum of weight * latency
  // Geometric mean of the latencies, each counted `weight` times. Its gradient is that of the sum
  // of weight * log latency, up to a factor that all have in common.
  kGeometricMean,
  kMax,  // the largest weight * latency
};

// Parses "weighted-sum", "geometric-mean" or "max".
std::optional<ObjectiveKind> ParseObjective(std::string_view name);
std::vector<std::string> ObjectiveNames();

struct VariantGroup {
  double weight = 1;         // number of uses
  std::string network = {};  // "" if it belongs to none
};

// Groups of one network count as one latency, the sum of their weight * latency. The geometric mean
// and the maximum are then taken over the networks (a network counts once) and the groups without a
// network. If target_s is above 0, the objective need not be smaller than target_s, and nothing is
// worth a trial once that is reached. Cost of a call: linear in the number of groups.
Objective MakeObjective(ObjectiveKind kind, std::vector<VariantGroup> groups, double target_s = 0);

}  // namespace kiln::search
