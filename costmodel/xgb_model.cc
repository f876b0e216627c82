#include "costmodel/xgb_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/hash/digest.h"
#include "base/log.h"
#include "costmodel/saved_model.h"

namespace kiln::costmodel {
namespace {

// Estimates give a row at least this share of its program's time, and at least this time: no
// row takes no time.
constexpr double kMinShare = 1e-3, kMinTime_s = 1e-12;
constexpr double kAnyTime_s = 1e-5;

// Walks equal rows through the trees once. Programs of one task share many rows.
class DistinctRows {
 public:
  int32_t Add(std::span<const float> row) {
    const Hash128 hash = Xxh3Hash128({reinterpret_cast<const char*>(row.data()), row.size_bytes()});
    const auto [at, is_new] =
        known_.try_emplace({hash.high, hash.low}, static_cast<int32_t>(rows_.size()));
    if (is_new) rows_.push_back(row.data());
    return at->second;
  }
  std::span<const float* const> rows() const { return rows_; }

 private:
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, int32_t> known_;
  std::vector<const float*> rows_;
};

}  // namespace

XgbModel::XgbModel(const XgbOptions& options) : options_(options) {
  KILN_CHECK(options_.estimate == nullptr || options_.boost.objective == Objective::kTime,
             "only times can be corrected");
}

std::string_view XgbModel::kind() const {
  return options_.estimate == nullptr ? "xgb" : "xgb-over-estimates";
}

std::vector<float> XgbModel::Estimates(const FloatMatrix& program) const {
  if (options_.estimate == nullptr) return {};
  std::vector<double> seconds = options_.estimate->PredictRows(program);
  double sum = 0;
  for (double& s : seconds) sum += s = -s;
  std::vector<float> logs;
  for (const double s : seconds)
    logs.push_back(static_cast<float>(std::log(std::max({s, kMinShare * sum, kMinTime_s}))));
  return logs;
}

std::shared_ptr<const Forest> XgbModel::forest() const {
  std::lock_guard lock(forest_mutex_);
  return forest_;
}

void XgbModel::Publish(Forest forest) {
  auto next = std::make_shared<const Forest>(std::move(forest));
  std::lock_guard lock(forest_mutex_);
  forest_ = std::move(next);
}

// ---- learning -------------------------------------------------------------------------------

Status XgbModel::Check(const std::vector<Sample>& samples) const {
  int columns = columns_;
  if (const auto current = forest(); current != nullptr) columns = current->columns();
  for (const Sample& sample : samples) {
    if (sample.rows == nullptr) return InvalidArgument("a sample without feature rows");
    const double cost_s = sample.cost_s.value_or(1);
    if (!std::isfinite(cost_s) || cost_s <= 0) {
      return InvalidArgument("a sample costs {} s, expected a positive time", cost_s);
    }
    if (sample.rows->rows() == 0) continue;
    if (columns == 0) columns = sample.rows->columns();
    if (sample.rows->columns() != columns) {
      return InvalidArgument("a sample has {} columns, those before had {}", sample.rows->columns(),
                             columns);
    }
    const std::span<const float> values = sample.rows->values();
    const auto bad = std::find_if_not(values.begin(), values.end(),
                                      [](float value) { return std::isfinite(value); });
    if (bad != values.end()) {
      return InvalidArgument("column {} of a sample holds {}, expected a finite number",
                             (bad - values.begin()) % columns, *bad);
    }
  }
  return OkStatus();
}

void XgbModel::Keep(const Sample& sample) {
  if (sample.cost_s.has_value()) {
    double& best = best_cost_s_.try_emplace(sample.task, *sample.cost_s).first->second;
    best = std::min(best, *sample.cost_s);
  }
  ++(sample.prior ? prior_seen_ : seen_);
  columns_ = sample.rows->columns();
  samples_.push_back({.rows = packers_[sample.task].Pack(*sample.rows),
                      .task = sample.task,
                      .id = sample.id,
                      .cost_s = sample.cost_s,
                      .prior = sample.prior,
                      .estimates = Estimates(*sample.rows)});
}

Status XgbModel::Update(std::vector<Sample> samples) {
  std::lock_guard lock(update_mutex_);
  KILN_RETURN_IF_ERROR(Check(samples));
  for (const Sample& sample : samples) {
    if (sample.rows->rows() == 0) continue;  // scores minus infinity, whatever it costs
    if (sample.corrects) {
      Correct(sample);
      continue;
    }
    Keep(sample);
  }
  auto most = static_cast<size_t>(std::max(1, options_.max_samples));
  if (options_.kept_samples) most = std::clamp<size_t>(options_.kept_samples(most), 1, most);
  if (samples_.size() > most) {
    samples_.erase(samples_.begin(), samples_.end() - static_cast<ptrdiff_t>(most));
  }
  const auto few = static_cast<uint64_t>(std::max(1, options_.min_samples));
  if (!trained()) return seen_ + prior_seen_ < few ? OkStatus() : Train(true);
  const auto grown_since = [&](uint64_t before, double share) {
    return seen_ > before &&
           static_cast<double>(seen_ - before) >= share * static_cast<double>(before);
  };
  if (seen_ >= few && grown_since(seen_at_full_, options_.full_growth)) return Train(true);
  if (grown_since(seen_at_training_, options_.step_growth)) return Train(false);
  return OkStatus();
}

void XgbModel::Correct(const Sample& correction) {
  std::optional<double> best_s;
  for (Known& sample : samples_) {
    if (sample.task != correction.task) continue;
    if (sample.id == correction.id) sample.cost_s = correction.cost_s;
    if (sample.cost_s && (!best_s || *sample.cost_s < *best_s)) best_s = sample.cost_s;
  }
  if (best_s.has_value()) best_cost_s_[correction.task] = *best_s;
}

Status XgbModel::Train(bool full) {
  std::vector<Pack> packs;
  packs.reserve(samples_.size());
  double prior_weight = 0;  // sum over all prior samples
  bool only_prior = true;
  std::vector<std::vector<float>> relative;  // relative to the best of the task, as targets are
  relative.reserve(samples_.size());
  std::vector<FloatMatrix> rows;
  rows.reserve(samples_.size());
  for (const Known& sample : samples_) {
    rows.push_back(packers_.at(sample.task).Unpack(sample.rows));
    // The share of the best throughput of its task; 0 for a failure.
    const auto best = best_cost_s_.find(sample.task);
    const double throughput = sample.cost_s ? best->second / *sample.cost_s : 0;
    relative.push_back(sample.estimates);
    // If all programs of a task have failed, any time serves as the unit.
    const double unit_s = best != best_cost_s_.end() ? best->second : kAnyTime_s;
    for (float& estimate : relative.back()) estimate -= static_cast<float>(std::log(unit_s));
    packs.push_back({.rows = &rows.back(),
                     .throughput = static_cast<float>(throughput),
                     .weight = static_cast<float>(std::max(throughput, options_.min_weight)),
                     .estimates = relative.back()});
    if (sample.prior) prior_weight += packs.back().weight;
    only_prior &= sample.prior;
  }
  if (packs.empty()) return OkStatus();
  if (!only_prior && prior_weight > options_.prior_weight) {
    const double less = options_.prior_weight / prior_weight;
    for (size_t i = 0; i < packs.size(); ++i) {
      if (samples_[i].prior) packs[i].weight *= static_cast<float>(less);
    }
  }
  BoostOptions boost = options_.boost;
  const auto current = forest();
  Forest next(packs[0].rows->columns());
  if (!full) {
    next = *current;
    boost.max_rounds = options_.step_rounds;
  }
  const BoostInput set(packs, boost.objective);
  KILN_RETURN_IF_ERROR(Boost(set, boost, next));
  KILN_DEBUG_LOG("costmodel", 1, "{} training: {} programs, {} distinct rows, {} columns, {} trees",
                 full ? "full" : "further", packs.size(), set.rows().rows(), set.columns().size(),
                 next.trees());
  Publish(std::move(next));
  seen_at_training_ = seen_;
  if (full) seen_at_full_ = seen_;
  return OkStatus();
}

// ---- scores ---------------------------------------------------------------------------------

std::vector<double> XgbModel::Predict(std::span<const FloatMatrix* const> programs) const {
  const auto forest = this->forest();
  std::vector<double> scores(programs.size(), 0.0);
  DistinctRows distinct;
  std::vector<int32_t> members;
  for (size_t p = 0; p < programs.size(); ++p) {
    const FloatMatrix* program = programs[p];
    if (program->rows() == 0) scores[p] = -std::numeric_limits<double>::infinity();
    if (forest != nullptr && program->rows() > 0) {
      KILN_CHECK(program->columns() == forest->columns(), "{} columns, the model has {}",
                 program->columns(), forest->columns());
    }
    for (int i = 0; i < program->rows(); ++i) members.push_back(distinct.Add(program->row(i)));
  }
  if (forest != nullptr) {
    const std::vector<float> outputs = forest->Predict(distinct.rows());
    std::vector<float> of_program;
    auto member = members.begin();
    for (size_t p = 0; p < programs.size(); ++p) {
      of_program.clear();
      for (int i = 0; i < programs[p]->rows(); ++i) of_program.push_back(outputs[*member++]);
      if (of_program.empty()) continue;
      const std::vector<float> estimates = Estimates(*programs[p]);
      for (size_t i = 0; i < estimates.size(); ++i) of_program[i] += estimates[i];
      const double score = Score(options_.boost.objective, of_program);
      scores[p] = estimates.empty() ? score : -1 / score;
    }
  }
  return scores;
}

std::vector<double> XgbModel::PredictRows(const FloatMatrix& program) const {
  const auto forest = this->forest();
  if (forest == nullptr) return std::vector<double>(static_cast<size_t>(program.rows()), 0.0);
  KILN_CHECK(program.rows() == 0 || program.columns() == forest->columns(),
             "{} columns, the model has {}", program.columns(), forest->columns());
  std::vector<const float*> rows;
  for (int i = 0; i < program.rows(); ++i) rows.push_back(program.row(i).data());
  const std::vector<float> outputs = forest->Predict(rows);
  std::vector<double> scores(outputs.begin(), outputs.end());
  const std::vector<float> estimates = Estimates(program);
  for (size_t i = 0; i < estimates.size(); ++i) scores[i] += estimates[i];
  if (options_.boost.objective == Objective::kTime) {
    for (double& score : scores) score = -std::exp(score);
  }
  return scores;
}

std::vector<ColumnImportance> XgbModel::Importance() const {
  const auto forest = this->forest();
  return forest == nullptr ? std::vector<ColumnImportance>() : forest->Importance();
}

// ---- keeping --------------------------------------------------------------------------------

StatusOr<std::string> XgbModel::Save() const {
  std::lock_guard lock(update_mutex_);
  const auto current = forest();
  if (current == nullptr) {
    return FailedPrecondition("the cost model is not trained yet: {} samples, it needs {}",
                              seen_ + prior_seen_, options_.min_samples);
  }
  return Seal({.kind = std::string(kind()),
               .feature_version = options_.feature_version,
               .samples = seen_at_full_,
               .body = current->Save()});
}

Status XgbModel::Load(std::string_view bytes) {
  std::lock_guard lock(update_mutex_);
  KILN_ASSIGN_OR_RETURN(const SavedModel saved, Unseal(bytes, kind(), options_.feature_version));
  KILN_ASSIGN_OR_RETURN(Forest loaded, Forest::Load(saved.body));
  if (!samples_.empty() && columns_ != loaded.columns()) {
    return FailedPrecondition("the saved cost model has {} columns, the samples have {}",
                              loaded.columns(), columns_);
  }
  Publish(std::move(loaded));
  seen_at_full_ = std::max(seen_at_full_, saved.samples);
  seen_at_training_ = seen_;
  return OkStatus();
}

}  // namespace kiln::costmodel
