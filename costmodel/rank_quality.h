// How well a model's scores order the programs of one task, in the figures of the field.
//
//   spearman   rank correlation of scores and throughputs
//   pairwise   share of the pairs of different throughput of which the faster one has the higher
//              score; equal scores count as half right (TenSet, NeurIPS 2021, "pairwise comparison
//              accuracy")
//   recall     share of the k fastest programs that are among the k highest scores
//   peak       when the k programs of the highest scores are measured, the best throughput found
//              relative to the best of all ("a-peak" of TVM v0.14, xgb_model.py, at one k)
//
// All are 1 for a perfect order; by chance spearman is 0 and pairwise 0.5. Pure functions.
#pragma once

#include <cstdint>
#include <span>

namespace kiln::costmodel {

struct RankQuality {
  double spearman = 0;
  double pairwise = 0;
  double recall = 0;
  double peak = 0;

  friend bool operator==(const RankQuality&, const RankQuality&) = default;
};

// `scores` and `throughputs` are of the same programs, at least two. k is at least 1; a larger k
// than the number of programs counts as that number. Cost: n^2 comparisons.
RankQuality QualityOf(std::span<const double> scores, std::span<const double> throughputs, int k);

// Returns the mean of each figure.
RankQuality MeanOf(std::span<const RankQuality> all);

}  // namespace kiln::costmodel
