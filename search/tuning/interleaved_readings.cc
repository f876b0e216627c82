#include "search/tuning/interleaved_readings.h"

#include <cmath>
#include <set>
#include <utility>

namespace kiln::search {
namespace {

constexpr int kPasses = 6;
constexpr size_t kMinRounds = 3;  // fewest rounds that tell how the device drifts

double Median(std::span<const double> values) { return MedianOf(values).cost_s; }

}  // namespace

bool InterleavedReadings::InRound(int64_t candidate) const {
  const auto found = candidates_.find(candidate);
  return found != candidates_.end() && !found->second.values.empty() &&
         found->second.values.back().round == round_;
}

void InterleavedReadings::AddValue(Candidate& candidate, int round, double cost_s) {
  candidate.values.push_back({round, cost_s, std::log(cost_s)});
}

void InterleavedReadings::Add(int64_t candidate, std::span<const double> costs_s) {
  if (costs_s.empty()) return;
  Candidate& entry = candidates_[candidate];
  entry.readings += static_cast<int>(costs_s.size());
  const size_t half = costs_s.size() / 2;
  if (half > 0) AddValue(entry, round_, Median(costs_s.first(half)));
  AddValue(entry, round_, Median(costs_s.subspan(half)));
  polished_ = false;
}

void InterleavedReadings::Restore(int64_t candidate, std::span<const double> values_s,
                                  int readings) {
  if (values_s.empty()) return;
  Candidate& entry = candidates_[candidate];
  entry.readings = readings;
  entry.values.clear();
  for (const double value_s : values_s) AddValue(entry, 0, value_s);
  polished_ = false;
}

void InterleavedReadings::Forget(int64_t candidate) {
  if (candidates_.erase(candidate) > 0) polished_ = false;
}

const std::vector<double>& InterleavedReadings::values_s(int64_t candidate) const {
  static const std::vector<double> kNone;
  const auto found = candidates_.find(candidate);
  if (found == candidates_.end()) return kNone;
  Polish();
  return found->second.values_s;
}

int InterleavedReadings::blocks(int64_t candidate) const {
  const auto found = candidates_.find(candidate);
  if (found == candidates_.end()) return 0;
  return static_cast<int>(found->second.values.size()) / kValuesPerBlock;
}

int InterleavedReadings::readings(int64_t candidate) const {
  const auto found = candidates_.find(candidate);
  return found == candidates_.end() ? 0 : found->second.readings;
}

double InterleavedReadings::DriftShare() const {
  std::map<int, std::set<int64_t>> read_in;  // round -> candidates
  for (const auto& [id, candidate] : candidates_) {
    for (const Value& value : candidate.values) read_in[value.round].insert(id);
  }
  std::vector<double> drifts;
  for (const auto& [round, drift] : Drift()) {
    // Restored values come from many rounds.
    if (round != 0 && read_in[round].size() >= 2) drifts.push_back(drift);
  }
  if (drifts.size() < kMinRounds) return 0;
  return StudentT95(static_cast<double>(drifts.size() - 1)) * ScaleOf(drifts, Median(drifts));
}

void InterleavedReadings::Polish() const {
  if (polished_) return;
  polished_ = true;
  const std::map<int, double> drift = Drift();
  for (const auto& [id, candidate] : candidates_) {
    candidate.values_s.clear();
    for (const Value& value : candidate.values) {
      candidate.values_s.push_back(value.cost_s / std::exp(drift.at(value.round)));
    }
  }
}

std::map<int, double> InterleavedReadings::Drift() const {
  std::map<int, double> drift;
  std::map<int, int> candidates_in;  // round -> number of candidates
  for (const auto& [id, candidate] : candidates_) {
    int last = -1;
    for (const Value& value : candidate.values) {
      drift[value.round] = 0;
      if (std::exchange(last, value.round) != value.round) ++candidates_in[value.round];
    }
  }
  for (int pass = 0; pass < kPasses; ++pass) {
    std::map<int, std::vector<double>> off;  // key: round; differences from the candidates' medians
    for (const auto& [id, candidate] : candidates_) {
      std::vector<double> even;
      for (const Value& value : candidate.values) {
        even.push_back(value.log_cost - drift[value.round]);
      }
      const double own = Median(even);
      for (const Value& value : candidate.values) off[value.round].push_back(value.log_cost - own);
    }
    // A round of one candidate says nothing about the device, and keeps its values.
    std::vector<double> level;
    for (auto& [round, values] : off) {
      if (candidates_in[round] < 2) continue;
      drift[round] = Median(values);
      level.insert(level.end(), values.size(), drift[round]);
    }
    const double typical = Median(level);
    for (auto& [round, value] : drift) {
      if (candidates_in[round] >= 2) value -= typical;
    }
  }
  return drift;
}

}  // namespace kiln::search
