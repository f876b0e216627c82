#include "search/templates/tuners/config_tuner.h"

#include <algorithm>

namespace kiln::search {
namespace {

constexpr int kDraws = 1000;
constexpr int64_t kMaxScanned = 1 << 20;

}  // namespace

std::optional<int64_t> VisitedPoints::NextOther(int64_t start, int64_t most) const {
  for (int64_t i = 0; i < std::min(most, space_.range()); ++i) {
    const int64_t index = (start + i) % space_.range();
    if (!Contains(index) && space_.IsValid(index)) return index;
  }
  return std::nullopt;
}

std::optional<int64_t> VisitedPoints::RandomOther(Rng& rng) const {
  for (int draw = 0; draw < kDraws; ++draw) {
    const int64_t index = UniformInt(rng, space_.range());
    if (!Contains(index) && space_.IsValid(index)) return index;
  }
  return NextOther(UniformInt(rng, space_.range()), kMaxScanned);
}

std::optional<int64_t> RandomTuner::Next() {
  const std::optional<int64_t> index = visited_.RandomOther(rng_);
  if (index) visited_.Insert(*index);
  return index;
}

std::optional<int64_t> GridTuner::Next() {
  for (int64_t scanned = 0; next_ < space_.range() && scanned < kMaxScanned; ++scanned) {
    const int64_t index = next_++;
    if (space_.IsValid(index) && visited_.Insert(index)) return index;
  }
  return std::nullopt;
}

}  // namespace kiln::search
