// What databases hold, as a cost model sees it: by workload and target, the programs that worked.
#pragma once

#include <array>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "costmodel/cost_model.h"
#include "search/space/task.h"

namespace kiln {

struct MeasuredWorkload {
  std::string key;
  std::unique_ptr<search::Task> task;  // for the hardware of its first record
  // In the order of the databases and their records. Costs are the shortest readings: other
  // processes only ever make one longer.
  std::vector<costmodel::Sample> samples;
};

// Those with at least `at_least` programs. Takes half a second for 5,000 CUDA programs on two
// cores.
StatusOr<std::vector<MeasuredWorkload>> ReadMeasuredWorkloads(
    std::span<const std::string> databases, size_t at_least);

// How scores order programs: Spearman's rank correlation with throughputs, and the best throughput
// among the 1, 8, 64 programs with the highest scores, relative to the best of all.
inline constexpr size_t kTops[] = {1, 8, 64};
struct RankFigures {
  double spearman = 0;
  std::array<double, std::size(kTops)> top = {};

  void Add(const RankFigures& other);
  RankFigures DividedBy(double count) const;
  std::string Print() const;
};
RankFigures RanksOf(const std::vector<costmodel::Sample>& samples,
                    const std::vector<double>& scores);

}  // namespace kiln
