// The input of a boosting run. A pack is the feature rows of one program. Only the time of the
// whole program is measured, so the loss is a function of packs; the trees follow its derivatives
// by row.
//
// Three losses:
//   throughput  the sum of the rows' outputs should be the program's throughput relative to the
//               best of its task (Ansor, OSDI 2020; "pack sum" in TVM v0.14,
//               python/tvm/auto_scheduler/cost_model/xgb_model.py). Right only among programs with
//               the same number of rows.
//   time        each output is the logarithm of a row's time, and the logarithm of their sum should
//               be that of the program's time relative to the best: times do add up.
//   rank        the faster one of two programs should have the higher sum of outputs: the logistic
//               loss of pairs (rank:pairwise of XGBoost; autotvm's loss "rank"). The sums
//               themselves have no meaning.
//
// If rows come with estimates of their outputs, the outputs are the errors of the estimates
// (base_margin of XGBoost).
//
// Equal rows are kept once, and columns that are constant are left out. Neither changes the result;
// most programs of one task share rows and leave columns at zero.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/numbers/float_matrix.h"

namespace kiln::costmodel {

enum class Objective { kThroughput, kTime, kRank };

struct Pack {
  const FloatMatrix* rows = nullptr;  // not owned, not empty
  float throughput = 0;               // relative to the task's best: in (0, 1]; 0: it failed
  float weight = 1;
  // An estimate for each row, which is added to the row's output. For kTime it is the logarithm of
  // the row's time. Empty: no estimates.
  std::span<const float> estimates = {};
};

// Returns the throughput of a program relative to the best of its task, from the outputs of its
// rows with estimates added.
double Score(Objective objective, std::span<const float> outputs);

class BoostInput {
 public:
  BoostInput(std::span<const Pack> packs, Objective objective);

  // The distinct rows, with only the columns that change.
  const FloatMatrix& rows() const { return rows_; }
  // The full rows behind rows(). Valid as long as the packs live.
  std::span<const float* const> full_rows() const { return full_rows_; }
  // Index in the full rows of each column of rows().
  std::span<const int32_t> columns() const { return columns_; }
  int packs() const { return static_cast<int>(targets_.size()); }

  // The value that every row's output starts with.
  float base() const { return base_; }
  // Half the weighted mean square of the errors of the packs (for kRank: the mean loss of pairs),
  // and its derivatives by the output of each distinct row. The second derivatives belong to a
  // bound that holds however the outputs of a pack change together. With the plain derivatives of
  // the throughput, packs of more than 2 / eta rows would overshoot further in each round.
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
  // For Objective::kTime: the time of a row, by its place among the rows of all packs, and the time
  // of all rows of a pack.
  double RowTime(int member, std::span<const float> outputs) const;
  double Time(int pack, std::span<const float> outputs) const;

  const Objective objective_;
  float base_ = 0;
  FloatMatrix rows_;
  std::vector<const float*> full_rows_;
  std::vector<int32_t> columns_;
  std::vector<int32_t> members_;          // distinct row of each row, pack by pack
  std::vector<float> estimates_;          // one for each row
  std::vector<int32_t> starts_;           // start of each pack in members_; one more at the end
  std::vector<float> targets_, weights_;  // throughput, or the logarithm of the time
  std::vector<bool> failed_;              // its true time is longer than its target
  double total_weight_ = 0;
  // For Objective::kRank: the packs that are compared, the faster one first. Each is compared with
  // at most 64 others, near and far in the order of their throughputs.
  std::vector<std::pair<int32_t, int32_t>> pairs_;
};

}  // namespace kiln::costmodel
