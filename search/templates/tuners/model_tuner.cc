#include "search/templates/tuners/model_tuner.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/hash/xxh3.h"
#include "base/log.h"
#include "search/templates/tuners/point_forest.h"

namespace kiln::search {
namespace {

// Share of a plan's points that are replaced by random ones, at its end.
constexpr double kChanceShare = 0.05;
constexpr size_t kMaxCached = 100'000;

// Returns the place of an annotation's word among its 11 places.
int PlaceOf(std::string_view word) {
  static constexpr std::string_view kWords[] = {
      "none",        "vec",         "unroll",      "blockIdx.x", "blockIdx.y", "blockIdx.z",
      "threadIdx.x", "threadIdx.y", "threadIdx.z", "vthread",    "fuse"};
  return static_cast<int>(std::ranges::find(kWords, word) - std::begin(kWords));
}
constexpr int kPlaces = 11;
constexpr uint64_t kWordNumbers = 1 << 20;  // all exact as floats

float NumberOf(const OptionEntity& option) {
  if (const auto* flag = std::get_if<bool>(&option.value)) return *flag ? 1 : 0;
  if (const auto* number = std::get_if<int64_t>(&option.value)) return static_cast<float>(*number);
  if (const auto* number = std::get_if<double>(&option.value)) return static_cast<float>(*number);
  // Trees ask where a number lies, so any number serves that differs from those of other words.
  if (const auto* word = std::get_if<std::string>(&option.value))
    return static_cast<float>(Xxh3(*word) % kWordNumbers);
  return 0;
}

std::vector<const float*> PointersOf(const FloatMatrix& rows) {
  std::vector<const float*> pointers;
  for (int i = 0; i < rows.rows(); ++i) pointers.push_back(rows.row(i).data());
  return pointers;
}

}  // namespace

std::vector<float> KnobFeatures(const Config& config) {
  std::vector<float> row;
  for (const auto& [name, entity] : config.entities) {
    if (const auto* split = std::get_if<SplitEntity>(&entity)) {
      row.insert(row.end(), split->sizes.begin(), split->sizes.end());
    } else if (const auto* reorder = std::get_if<ReorderEntity>(&entity)) {
      row.insert(row.end(), reorder->order.begin(), reorder->order.end());
    } else if (const auto* annotate = std::get_if<AnnotateEntity>(&entity)) {
      row.insert(row.end(), annotate->places.begin(), annotate->places.end());
      for (const std::string& word : annotate->words) {
        for (int place = 0; place < kPlaces; ++place)
          row.push_back(place == PlaceOf(word) ? 1.0F : 0.0F);
      }
    } else {
      row.push_back(NumberOf(std::get<OptionEntity>(entity)));
    }
  }
  return row;
}

ModelTuner::ModelTuner(const ConfigSpace& space, PointFeatures features, uint64_t seed,
                       const ModelOptions& options)
    : space_(space),
      features_(std::move(features)),
      options_(options),
      visited_(space),
      rng_(seed),
      width_(options.base != nullptr ? options.base->columns() : 0),
      base_(options.base) {}

void ModelTuner::Tell(int64_t index, double throughput) {
  visited_.Insert(index);
  if (throughputs_.insert_or_assign(index, throughput).second) told_.push_back(index);
}

const std::vector<float>& ModelTuner::FeaturesOf(int64_t index) {
  const auto [entry, is_new] = cache_.try_emplace(index);
  if (is_new) entry->second = features_(index);
  width_ = std::max(width_, static_cast<int>(entry->second.size()));
  return entry->second;
}

FloatMatrix ModelTuner::Rows(std::span<const int64_t> indices) {
  if (cache_.size() > kMaxCached) cache_.clear();
  for (const int64_t index : indices) FeaturesOf(index);
  FloatMatrix rows(static_cast<int>(indices.size()), std::max(1, width_));
  for (size_t i = 0; i < indices.size(); ++i)
    std::ranges::copy(FeaturesOf(indices[i]), rows.row(static_cast<int>(i)).begin());
  return rows;
}

std::vector<float> ModelTuner::Estimates(std::span<const float* const> rows) const {
  if (base_ == nullptr) return std::vector<float>(rows.size());
  std::vector<float> estimates = base_->Predict(rows);
  for (float& estimate : estimates) estimate *= static_cast<float>(base_weight_);
  return estimates;
}

Status ModelTuner::Train() {
  double best = 0;
  for (const auto& [index, throughput] : throughputs_) best = std::max(best, throughput);
  base_weight_ = BaseModel::Weight(std::ssize(told_));
  if (base_weight_ == 0) base_ = nullptr;
  const FloatMatrix all = Rows(told_);
  std::vector<float> throughputs;
  for (const int64_t index : told_)
    throughputs.push_back(static_cast<float>(throughputs_.at(index) / best));
  KILN_ASSIGN_OR_RETURN(forest_, LearnPoints(all, throughputs, Estimates(PointersOf(all)),
                                             {options_.rank_loss, options_.stop}));
  ++trainings_;
  return OkStatus();
}

std::vector<double> ModelTuner::Scores(std::span<const int64_t> indices) {
  const FloatMatrix all = Rows(indices);
  // Rows may be longer than those that the models learned from. The further features are not read.
  const std::vector<const float*> rows = PointersOf(all);
  const std::vector<float> estimates = Estimates(rows);
  std::vector<double> scores(estimates.begin(), estimates.end());
  if (forest_.trees() > 0) {
    const std::vector<float> outputs = forest_.Predict(rows);
    for (size_t i = 0; i < scores.size(); ++i) scores[i] += outputs[i];
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    if (FeaturesOf(indices[i]).empty()) scores[i] = -1e30;
  }
  return scores;
}

void ModelTuner::Plan() {
  if (forest_.trees() == 0 && base_ == nullptr) return;  // all points look alike
  const bool diverse = options_.diversity_ratio > 1;
  const int wanted =
      static_cast<int>(options_.plan_size * (diverse ? options_.diversity_ratio : 1));
  const std::vector<Scored> best = Anneal(
      space_, [this](std::span<const int64_t> indices) { return Scores(indices); }, wanted,
      [this](int64_t index) { return !visited_.Contains(index); }, options_.annealing, chains_,
      rng_, [this] { return options_.stop.stop_requested(); });
  plan_.clear();
  planned_ = 0;
  if (diverse) {
    plan_ = PickDiverse(space_, best, options_.plan_size);
  } else {
    for (const Scored& point : best) plan_.push_back(point.index);
  }
}

std::optional<int64_t> ModelTuner::Next() {
  const bool due = std::ssize(told_) >= int64_t{options_.plan_size} * (trainings_ + 1);
  const bool any_runs =
      std::ranges::any_of(throughputs_, [](const auto& p) { return p.second > 0; });
  const bool is_first = !std::exchange(has_planned_, true);
  if (due && any_runs) {
    const Status trained = Train();
    if (trained.ok()) {
      Plan();
    } else {
      LogWarn("the model of a template: {}", Message(trained));
    }
  } else if (is_first && base_ != nullptr) {
    Plan();
  }
  while (planned_ < plan_.size() && visited_.Contains(plan_[planned_])) ++planned_;
  const auto by_chance = static_cast<size_t>(kChanceShare * options_.plan_size);
  std::optional<int64_t> index;
  if (planned_ + by_chance < plan_.size()) {
    index = plan_[planned_++];
  } else {
    index = visited_.RandomOther(rng_);
  }
  if (index) visited_.Insert(*index);
  return index;
}

std::vector<int64_t> PickDiverse(const ConfigSpace& space, std::span<const Scored> points,
                                 int count) {
  std::vector<std::vector<int>> digits;
  for (const Scored& point : points) digits.push_back(space.Digits(point.index));
  std::vector<std::set<int>> seen(space.knobs().size());
  std::vector<bool> taken(points.size());
  std::vector<int64_t> picked;
  while (std::ssize(picked) < count && picked.size() < points.size()) {
    size_t best = points.size();
    int most = -1;
    for (size_t i = 0; i < points.size(); ++i) {
      if (taken[i]) continue;
      int adds = 0;
      for (size_t knob = 0; knob < seen.size(); ++knob)
        adds += seen[knob].contains(digits[i][knob]) ? 0 : 1;
      if (adds > most) {
        most = adds;
        best = i;
      }
    }
    taken[best] = true;
    picked.push_back(points[best].index);
    for (size_t knob = 0; knob < seen.size(); ++knob) seen[knob].insert(digits[best][knob]);
  }
  return picked;
}

}  // namespace kiln::search
