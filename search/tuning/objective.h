// The objective of a job: the function of latencies that it minimises. Each latency is that of a
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

// Anything that does not rise when a latency falls.
struct Objective {
  std::function<double(std::span<const double> latencies_s)> value;
  // How much it falls for each second that latency i falls; 0: that would be no use.
  std::function<double(std::span<const double> latencies_s, int i)> slope;
};

enum class ObjectiveKind {
  kWeightedSum,    // sum of weight * latency
  kGeometricMean,  // of the latencies, each counted `weight` times: the gradient of the sum of
                   // weight * log latency, but for a factor that all have in common
  kMax,            // the largest weight * latency
};

// "weighted-sum", "geometric-mean", "max".
std::optional<ObjectiveKind> ParseObjective(std::string_view name);
std::vector<std::string> ObjectiveNames();

struct VariantGroup {
  double weight = 1;         // uses
  std::string network = {};  // "": alone
};

// Groups of one network count as one latency, the sum of their weight * latency; the geometric mean
// and the largest are then taken over the networks (a network counts once) and the groups that are
// alone. target_s > 0: need not be smaller than that; nothing is worth a trial once it is reached.
Objective MakeObjective(ObjectiveKind kind, std::vector<VariantGroup> groups, double target_s = 0);

}  // namespace kiln::search
