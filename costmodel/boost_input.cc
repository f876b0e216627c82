#include "costmodel/boost_input.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "base/hash/digest.h"

namespace kiln::costmodel {
namespace {

// Programs slower than this count as equally slow, and so do failed ones.
constexpr float kSlowest = 0.01F;

}  // namespace

BoostInput::BoostInput(std::span<const Pack> packs, Objective objective) : objective_(objective) {
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, int32_t> known;
  starts_.push_back(0);
  for (const Pack& pack : packs) {
    for (int i = 0; i < pack.rows->rows(); ++i) {
      const std::span<const float> row = pack.rows->row(i);
      const Hash128 hash =
          Xxh3Hash128({reinterpret_cast<const char*>(row.data()), row.size_bytes()});
      const auto [at, is_new] =
          known.try_emplace({hash.high, hash.low}, static_cast<int32_t>(full_rows_.size()));
      if (is_new) full_rows_.push_back(row.data());
      members_.push_back(at->second);
      estimates_.push_back(pack.estimates.empty() ? 0 : pack.estimates[static_cast<size_t>(i)]);
    }
    starts_.push_back(static_cast<int32_t>(members_.size()));
    const float slowest = std::max(pack.throughput, kSlowest);
    targets_.push_back(objective == Objective::kTime ? -std::log(slowest) : pack.throughput);
    failed_.push_back(objective == Objective::kTime && pack.throughput <= kSlowest);
    weights_.push_back(pack.weight);
    total_weight_ += pack.weight;
  }
  if (full_rows_.empty()) return;
  if (objective == Objective::kTime) {
    // Begins as if all rows of a pack took the same time, or the same multiple of their estimates.
    const std::vector<float> zeros(full_rows_.size());
    double sum = 0;
    for (int p = 0; p < this->packs(); ++p) sum += targets_[p] - std::log(Time(p, zeros));
    base_ = static_cast<float>(sum / this->packs());
  }

  if (objective == Objective::kRank) PairUp();

  const int width = packs[0].rows->columns();
  for (int32_t c = 0; c < width; ++c) {
    const float first = full_rows_[0][c];
    const auto differs = [&](const float* row) { return row[c] != first; };
    if (std::any_of(full_rows_.begin(), full_rows_.end(), differs)) columns_.push_back(c);
  }
  rows_ = FloatMatrix(static_cast<int>(full_rows_.size()), static_cast<int>(columns_.size()));
  for (int i = 0; i < rows_.rows(); ++i) {
    const std::span<float> row = rows_.row(i);
    for (size_t c = 0; c < columns_.size(); ++c) row[c] = full_rows_[i][columns_[c]];
  }
}

std::span<const int32_t> BoostInput::Members(int pack) const {
  return std::span(members_).subspan(static_cast<size_t>(starts_[pack]),
                                     static_cast<size_t>(starts_[pack + 1] - starts_[pack]));
}

double BoostInput::RowTime(int member, std::span<const float> outputs) const {
  return std::exp(outputs[members_[member]] + estimates_[member]);
}

double BoostInput::Time(int pack, std::span<const float> outputs) const {
  double sum = 0;
  for (int m = starts_[pack]; m < starts_[pack + 1]; ++m) sum += RowTime(m, outputs);
  return sum;
}

double BoostInput::Sum(int pack, std::span<const float> outputs) const {
  double sum = 0;
  for (int m = starts_[pack]; m < starts_[pack + 1]; ++m)
    sum += outputs[members_[m]] + estimates_[m];
  return sum;
}

void BoostInput::PairUp() {
  constexpr size_t kPartners = 64;
  std::vector<int32_t> order(targets_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return targets_[a] > targets_[b]; });
  for (size_t i = 0; i < order.size(); ++i) {
    size_t last = 0;
    for (size_t k = 1; k <= kPartners; ++k) {
      // Compares with all others if there are few, and otherwise with evenly spaced ones.
      const size_t distance = std::max(k, k * (order.size() - 1) / kPartners);
      if (distance == last || i + distance >= order.size()) continue;
      last = distance;
      const int32_t fast = order[i], slow = order[i + distance];
      if (targets_[fast] > targets_[slow]) pairs_.emplace_back(fast, slow);
    }
  }
}

double BoostInput::PairLoss(std::span<const float> outputs) const {
  double loss = 0;
  for (const auto& [fast, slow] : pairs_)
    loss += std::log1p(std::exp(Sum(slow, outputs) - Sum(fast, outputs)));
  return pairs_.empty() ? 0 : loss / static_cast<double>(pairs_.size());
}

// Uses the logistic function of the difference, and a bound of its slope.
void BoostInput::DerivePairs(std::span<const float> outputs, std::span<float> gradient,
                             std::span<float> hessian) const {
  for (const auto& [fast, slow] : pairs_) {
    const double wrong = 1 / (1 + std::exp(Sum(fast, outputs) - Sum(slow, outputs)));
    const auto slope = static_cast<float>(wrong);
    const auto bound = static_cast<float>(std::max(2 * wrong * (1 - wrong), 1e-16));
    for (const int32_t row : Members(fast)) {
      gradient[row] -= slope;
      hessian[row] += bound;
    }
    for (const int32_t row : Members(slow)) {
      gradient[row] += slope;
      hessian[row] += bound;
    }
  }
}

double BoostInput::Miss(int pack, std::span<const float> outputs) const {
  if (objective_ == Objective::kThroughput) return Sum(pack, outputs) - targets_[pack];
  const double miss = std::log(Time(pack, outputs)) - targets_[pack];
  return failed_[pack] ? std::min(miss, 0.0) : miss;
}

double BoostInput::Loss(std::span<const float> outputs) const {
  if (objective_ == Objective::kRank) return PairLoss(outputs);
  double loss = 0;
  for (int p = 0; p < packs(); ++p) {
    const double miss = Miss(p, outputs);
    loss += 0.5 * weights_[p] * miss * miss;
  }
  return total_weight_ > 0 ? loss / total_weight_ : 0;
}

void BoostInput::Derive(std::span<const float> outputs, std::span<float> gradient,
                        std::span<float> hessian) const {
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  std::fill(hessian.begin(), hessian.end(), 0.0F);
  if (objective_ == Objective::kRank) return DerivePairs(outputs, gradient, hessian);
  for (int p = 0; p < packs(); ++p) {
    const std::span<const int32_t> members = Members(p);
    const auto slope = static_cast<float>(weights_[p] * Miss(p, outputs));
    if (objective_ == Objective::kThroughput) {
      // (sum of n changes)^2 <= n * (sum of their squares)
      const float bound = weights_[p] * static_cast<float>(members.size());
      for (const int32_t row : members) {
        gradient[row] += slope;
        hessian[row] += bound;
      }
      continue;
    }
    // The logarithm of a sum changes by the mean of the changes, weighted by the rows' shares. The
    // square of a mean is at most the mean of the squares.
    const double time = Time(p, outputs);
    for (int m = starts_[p]; m < starts_[p + 1]; ++m) {
      const auto share = static_cast<float>(RowTime(m, outputs) / time);
      gradient[members_[m]] += slope * share;
      hessian[members_[m]] += weights_[p] * share;
    }
  }
}

double Score(Objective objective, std::span<const float> outputs) {
  double sum = 0;
  if (objective != Objective::kTime) {
    for (const float output : outputs) sum += output;
    return sum;
  }
  for (const float output : outputs) sum += std::exp(output);
  return 1 / sum;
}

}  // namespace kiln::costmodel
