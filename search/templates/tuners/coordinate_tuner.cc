#include "search/templates/tuners/coordinate_tuner.h"

#include <algorithm>
#include <bit>

namespace kiln::search {
namespace {

// With more knobs, only patterns of one and two of them are tried.
constexpr size_t kMaxPatternKnobs = 8;

// Lists the sets of knobs in which a neighbour differs, with a bit for each knob: single knobs come
// first, all knobs together last.
std::vector<uint64_t> Patterns(size_t knobs) {
  std::vector<uint64_t> patterns;
  if (knobs <= kMaxPatternKnobs) {
    for (uint64_t pattern = 1; pattern < uint64_t{1} << knobs; ++pattern)
      patterns.push_back(pattern);
    std::ranges::stable_sort(patterns, {}, [](uint64_t p) { return std::popcount(p); });
    return patterns;
  }
  const size_t most = std::min<size_t>(knobs, 64);
  for (size_t i = 0; i < most; ++i) patterns.push_back(uint64_t{1} << i);
  for (size_t i = 0; i < most; ++i) {
    for (size_t j = 0; j < i; ++j) patterns.push_back(uint64_t{1} << i | uint64_t{1} << j);
  }
  return patterns;
}

}  // namespace

CoordinateTuner::CoordinateTuner(const ConfigSpace& space, uint64_t seed,
                                 const CoordinateOptions& options)
    : space_(space), options_(options), visited_(space), rng_(seed) {
  for (const Knob& knob : space_.knobs())
    most_ = std::max(most_, static_cast<int>(std::min<int64_t>(knob.size() - 1, 1 << 20)));
  if (space_.IsValid(0)) Enqueue(0);
  Restart();
}

void CoordinateTuner::Enqueue(int64_t index) {
  if (space_.IsValid(index) && visited_.Insert(index)) queue_.push_back(index);
}

void CoordinateTuner::Restart() {
  for (int i = 1; i < options_.starts; ++i) {
    const std::optional<int64_t> index = visited_.RandomOther(rng_);
    if (!index) return;
    Enqueue(*index);
  }
}

void CoordinateTuner::EnqueueNeighbours() {
  const std::vector<int> centre = space_.Digits(centre_);
  for (const uint64_t pattern : Patterns(centre.size())) {
    for (const int direction : {1, -1}) {
      std::vector<int> digits = centre;
      bool inside = true;
      for (size_t knob = 0; knob < std::min<size_t>(digits.size(), 64); ++knob) {
        if ((pattern >> knob & 1) == 0) continue;
        digits[knob] += direction * step_;
        inside = inside && digits[knob] >= 0 && digits[knob] < space_.knobs()[knob].size();
      }
      if (inside) Enqueue(space_.Index(digits));
    }
  }
}

void CoordinateTuner::Tell(int64_t index, double throughput) {
  visited_.Insert(index);
  std::erase(queue_, index);
  if (index == centre_) {
    throughput_ = throughput;
    return;
  }
  if (throughput <= throughput_) return;
  centre_ = index;
  throughput_ = throughput;
  step_ = 1;
  for (const int64_t left_behind : queue_) visited_.Erase(left_behind);
  queue_.clear();
  EnqueueNeighbours();
}

std::optional<int64_t> CoordinateTuner::Next() {
  while (queue_.empty() && centre_ >= 0 && step_ <= most_) {
    EnqueueNeighbours();
    ++step_;
  }
  if (queue_.empty()) {
    Restart();
    // The best of these starts is the next centre, even if it is much worse than the last centre.
    centre_ = -1;
    throughput_ = 0;
    step_ = 1;
  }
  if (queue_.empty()) return std::nullopt;
  const int64_t index = queue_.front();
  queue_.pop_front();
  return index;
}

}  // namespace kiln::search
