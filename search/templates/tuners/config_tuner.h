// Which point of a configuration space is tried next. One file for each way (TVM v0.8,
// python/tvm/autotvm/tuner).
//
// Asynchronous: points may be asked for while others are still being measured, and results come in
// any order. One thread. The same seed and the same sequence of calls give the same points.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>

#include "base/rng.h"
#include "search/templates/config_space.h"

namespace kiln::search {

class ConfigTuner {
 public:
  virtual ~ConfigTuner() = default;
  // A valid point, not given or told of before. Nothing: as far as it can tell there is none left.
  virtual std::optional<int64_t> Next() = 0;
  // The result of a point: programs a second, 0 where it failed. Told again, it corrects.
  virtual void Tell(int64_t index, double throughput) = 0;
};

// The points of a space that were given or told of.
class VisitedPoints {
 public:
  // `space` outlives it.
  explicit VisitedPoints(const ConfigSpace& space) : space_(space) {}

  // False: it was there already.
  bool Insert(int64_t index) { return visited_.insert(index).second; }
  void Erase(int64_t index) { visited_.erase(index); }
  bool Contains(int64_t index) const { return visited_.contains(index); }
  // A valid point that was not visited. It is looked for at random, and then among the next million
  // points of a random one; so nothing means that a space of a million points is used up.
  std::optional<int64_t> RandomOther(Rng& rng) const;
  // The first one from `start` on, around the end of the space, of `most` points.
  std::optional<int64_t> NextOther(int64_t start, int64_t most) const;

 private:
  const ConfigSpace& space_;
  std::unordered_set<int64_t> visited_;
};

// Uniformly at random.
class RandomTuner final : public ConfigTuner {
 public:
  RandomTuner(const ConfigSpace& space, uint64_t seed) : visited_(space), rng_(seed) {}
  std::optional<int64_t> Next() override;
  void Tell(int64_t index, double) override { visited_.Insert(index); }

 private:
  VisitedPoints visited_;
  Rng rng_;
};

// By ascending index.
class GridTuner final : public ConfigTuner {
 public:
  explicit GridTuner(const ConfigSpace& space) : space_(space), visited_(space) {}
  std::optional<int64_t> Next() override;
  void Tell(int64_t index, double) override { visited_.Insert(index); }

 private:
  const ConfigSpace& space_;
  VisitedPoints visited_;
  int64_t next_ = 0;
};

}  // namespace kiln::search
