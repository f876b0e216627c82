// A schedule in the population of a search, with what is known of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/float_matrix.h"
#include "compiler/schedule/state.h"
#include "search/evolution/mutation.h"
#include "search/space/score.h"
#include "search/space/sketch.h"

namespace kiln::search {

struct Origin {
  enum Kind : uint8_t { kRandom, kMeasured, kMutation, kCrossover, kTransferred, kRule };
  Kind kind = kRandom;
  MutationKind mutation = MutationKind::kTileSize;      // the last change
  std::optional<int> step = {};                         // that it changed; none: the last part
  int changes = 0;                                      // since it was measured or drawn
  std::optional<int64_t> trial = {}, other_trial = {};  // nearest measured ancestors
  bool earlier = false, other_earlier = false;  // of earlier jobs: records' numbers, not trials'
};

// What computes the products of a schedule, in which measuring finds the largest differences: threads;
// matrix units of one warp; of four warps; of four warps whose tiles come in bulk.
inline constexpr int kUnitKinds = 4;
int UnitKindOf(std::span<const schedule::StepPtr> steps);

struct Individual {
  std::vector<schedule::StepPtr> steps = {};
  uint64_t hash = 0;
  std::optional<int> sketch = {};  // none: of none that this search made
  int unit_kind = 0;
  Origin origin = {};
  std::optional<schedule::State> state = {};  // as long as it is not evaluated
  std::shared_ptr<const FloatMatrix> rows = {};
  double score = kNoScore;
  std::optional<double> cost_s = {};  // when measured, and right

  // Those that compete with each other first, by number: of one sketch and one kind of units.
  std::optional<int> niche() const {
    return sketch ? std::optional(*sketch * kUnitKinds + unit_kind) : std::nullopt;
  }
};

Individual MakeIndividual(schedule::State state, std::optional<int> sketch, Origin origin);

// The number of the sketch that a schedule was made of.
std::optional<int> SketchOf(std::span<const schedule::StepPtr> steps,
                            std::span<const Sketch> sketches);

// "sketch 1, tile sizes of conv2d_nhwc.rc, 2 changes from trial 17"
std::string Describe(const Individual& individual, const dag::DagPtr& dag);

// Equal for schedules whose tiles are equal everywhere, or whose outermost tiles are.
uint64_t TilesHash(const Individual& individual);
// As TilesHash, but for what mostly changes no more than the order of a GPU thread's unrolled
// loops: only the product counts of the two inner tiles of an axis.
uint64_t TileShapesHash(const Individual& individual);
// Equal for GPU schedules whose blocks, threads and elements per thread are the same along every
// axis, and whose steps of a reduction have the same length: what is left is in which order a
// thread works, and what the compiler makes of it.
uint64_t BlockShapesHash(const Individual& individual);
uint64_t OuterTilesHash(const Individual& individual);
// Of the rows: equal for programs that no model can tell apart.
uint64_t RowsHash(const Individual& individual);

}  // namespace kiln::search
