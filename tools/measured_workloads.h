// Reads databases for cost models: the programs that worked, by workload and target.
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
  // The task for the hardware of its first record.
  std::unique_ptr<search::Task> task;
  // Samples in the order of the databases and their records. Costs are the shortest readings,
  // because other processes only ever make a reading longer.
  std::vector<costmodel::Sample> samples;
};

// Reads the workloads with at least `at_least` programs. Takes half a second for 5,000 CUDA
// programs on two cores.
StatusOr<std::vector<MeasuredWorkload>> ReadMeasuredWorkloads(
    std::span<const std::string> databases, size_t at_least);

// Figures of how scores order programs: Spearman's rank correlation with throughputs, and the best
// throughput among the 1, 8, 64 programs with the highest scores, relative to the best of all.
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
