// What a boosting run learns from. A pack is the feature rows of one program. Only the time of the
// whole program is measured, so the loss is one of packs; the trees follow its derivatives by row.
//
// Three losses:
//   throughput  the sum of the rows' outputs is to be the program's throughput relative to the best
//               of its task (Ansor, OSDI 2020; "pack sum" in TVM v0.14,
//               python/tvm/auto_scheduler/cost_model/xgb_model.py). Right only among programs with
//               the same number of rows.
//   time        each output is the logarithm of a row's time, and the logarithm of their sum is to
//               be that of the program's time relative to the best: times do add up.
//   rank        of two programs the faster one is to have the higher sum of outputs: the logistic
//               loss of pairs (rank:pairwise of XGBoost; autotvm's loss "rank"). What the sums are
//               says nothing.
//
// Where rows come with estimates of what their outputs are to be, the outputs are the errors of the
// estimates (base_margin of XGBoost).
//
// Equal rows are kept once, and columns that are constant are left out. Neither changes what is
// learned; most programs of one task share rows and leave columns at zero.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/float_matrix.h"

namespace kiln::costmodel {

enum class Objective { kThroughput, kTime, kRank };

struct Pack {
  const FloatMatrix* rows = nullptr;  // not owned, not empty
  float throughput = 0;               // relative to the task's best: in (0, 1]; 0: it failed
  float weight = 1;
  // What is known of each row beforehand, of kTime the logarithm of its time; a row's output is
  // added to it. Empty: nothing.
  std::span<const float> estimates = {};
};

// Of the rows of one program, estimates added: its throughput relative to the best of its task.
double Score(Objective objective, std::span<const float> outputs);

class TrainingSet {
 public:
  TrainingSet(std::span<const Pack> packs, Objective objective);

  // The distinct rows, of the columns that change.
  const FloatMatrix& rows() const { return rows_; }
  // The full rows behind them; as long as the packs live.
  std::span<const float* const> full_rows() const { return full_rows_; }
  // What each column of rows() is in the full rows.
  std::span<const int32_t> columns() const { return columns_; }
  int packs() const { return static_cast<int>(targets_.size()); }

  // What every row's output starts with.
  float base() const { return base_; }
  // Half the weighted mean square of what the packs miss (of kRank: the mean loss of pairs), and its derivatives by the output of each
  // distinct row. The second derivatives are those of a bound that holds however the outputs of a
  // pack change together: with the plain ones of the throughput, packs of more than 2 / eta rows
  // would overshoot further in each round.
  double Loss(std::span<const float> outputs) const;
  void Derive(std::span<const float> outputs, std::span<float> gradient,
              std::span<float> hessian) const;

 private:
  std::span<const int32_t> Members(int pack) const;
  double Miss(int pack, std::span<const float> outputs) const;
  double Sum(int pack, std::span<const float> outputs) const;
  void PairUp();
  double PairLoss(std::span<const float> outputs) const;
  void DerivePairs(std::span<const float> outputs, std::span<float> gradient,
                   std::span<float> hessian) const;
  // For Objective::kTime: of a row, by its place among those of all packs; and of all rows of a
  // pack.
  double RowTime(int member, std::span<const float> outputs) const;
  double Time(int pack, std::span<const float> outputs) const;

  const Objective objective_;
  float base_ = 0;
  FloatMatrix rows_;
  std::vector<const float*> full_rows_;
  std::vector<int32_t> columns_;
  std::vector<int32_t> members_;          // distinct row of each row, pack by pack
  std::vector<float> estimates_;          // of each row
  std::vector<int32_t> starts_;           // of a pack in members_; one more at the end
  std::vector<float> targets_, weights_;  // throughput, or the logarithm of the time
  std::vector<bool> failed_;              // its true time is longer than its target
  double total_weight_ = 0;
  // For Objective::kRank: which packs are compared, the faster one first. Each with at most 64
  // others, near and far in the order of their throughputs.
  std::vector<std::pair<int32_t, int32_t>> pairs_;
};

}  // namespace kiln::costmodel
