// Chooses the next point of a configuration space to try. There is one file for each method (TVM
// v0.8, python/tvm/autotvm/tuner).
//
// Points may be asked for while others are still being measured, and results come in any order. One
// thread. The same seed and the same sequence of calls give the same points.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>

#include "base/numbers/rng.h"
#include "search/templates/config_space.h"

namespace kiln::search {

class ConfigTuner {
 public:
  virtual ~ConfigTuner() = default;
  // Returns a valid point that was not returned or told before. Returns nothing if no point seems
  // to be left.
  virtual std::optional<int64_t> Next() = 0;
  // Takes the result of a point: programs a second, or 0 if it failed. A second result replaces the
  // first.
  virtual void Tell(int64_t index, double throughput) = 0;
};

// The points of a space that were given or told.
class VisitedPoints {
 public:
  // `space` outlives this object.
  explicit VisitedPoints(const ConfigSpace& space) : space_(space) {}

  // Returns false if the point was there already.
  bool Insert(int64_t index) { return visited_.insert(index).second; }
  void Erase(int64_t index) { visited_.erase(index); }
  bool Contains(int64_t index) const { return visited_.contains(index); }
  // Returns a valid point that was not visited. Looks at random points first, and then at the next
  // million points after a random one, so nothing means that a space of a million points is used
  // up.
  std::optional<int64_t> RandomOther(Rng& rng) const;
  // Returns the first such point among `most` points from `start` on, past the end of the space to
  // its begin.
  std::optional<int64_t> NextOther(int64_t start, int64_t most) const;

 private:
  const ConfigSpace& space_;
  std::unordered_set<int64_t> visited_;
};

// Chooses uniformly at random.
class RandomTuner final : public ConfigTuner {
 public:
  RandomTuner(const ConfigSpace& space, uint64_t seed) : visited_(space), rng_(seed) {}
  std::optional<int64_t> Next() override;
  void Tell(int64_t index, double) override { visited_.Insert(index); }

 private:
  VisitedPoints visited_;
  Rng rng_;
};

// Chooses by ascending index.
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
