// A schedule in the population of a search, and the facts about it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/numbers/float_matrix.h"
#include "compiler/schedule/state.h"
#include "search/evolution/mutation.h"
#include "search/space/score.h"
#include "search/space/sketch.h"

namespace kiln::search {

struct Origin {
  enum Kind : uint8_t { kRandom, kMeasured, kMutation, kCrossover, kTransferred, kRule };
  Kind kind = kRandom;
  MutationKind mutation = MutationKind::kTileSize;  // kind of the last change
  std::optional<int> step = {};                     // step that it changed; none: the last part
  // Number of changes since it was measured or drawn.
  int changes = 0;
  std::optional<int64_t> trial = {}, other_trial = {};  // nearest measured ancestors
  // The ancestors are records of earlier jobs, not trials.
  bool earlier = false, other_earlier = false;
};

// The units that compute the products of a schedule: threads; matrix units of one warp; matrix
// units of four warps; matrix units of four warps whose tiles come in bulk. The measured times of
// schedules differ most between these kinds.
inline constexpr int kUnitKinds = 4;
int UnitKindOf(std::span<const schedule::StepPtr> steps);

// Hashes of schedules. A search keeps one of each schedule that it has proposed, in some 15 bytes.
using Hashes = absl::flat_hash_set<uint64_t>;

struct Individual {
  std::vector<schedule::StepPtr> steps = {};
  uint64_t hash = 0;
  std::optional<int> sketch = {};  // none: the schedule comes from no sketch of this search
  int unit_kind = 0;
  Origin origin = {};
  std::shared_ptr<const schedule::State> state = {};  // kept until it is evaluated
  std::shared_ptr<const FloatMatrix> rows = {};
  double score = kNoScore;
  std::optional<double> cost_s = {};  // set if it was measured and its answer is right

  // Returns the number of the individual's niche: its sketch and its kind of units. The individuals
  // of a niche compete with each other first.
  std::optional<int> niche() const {
    return sketch ? std::optional(*sketch * kUnitKinds + unit_kind) : std::nullopt;
  }
};

Individual MakeIndividual(schedule::State state, std::optional<int> sketch, Origin origin);

// Returns the number of the sketch that a schedule was made of.
std::optional<int> SketchOf(std::span<const schedule::StepPtr> steps,
                            std::span<const Sketch> sketches);

// "sketch 1, tile sizes of conv2d_nhwc.rc, 2 changes from trial 17"
std::string Describe(const Individual& individual, const dag::DagPtr& dag);

// Equal for schedules with equal tiles everywhere. For OuterTilesHash: with equal outermost tiles.
uint64_t TilesHash(const Individual& individual);
// Like TilesHash, but only the product of the two inner tiles of an axis counts. Schedules with the
// same hash mostly differ only in the order of a GPU thread's unrolled loops.
uint64_t TileShapesHash(const Individual& individual);
// Equal for GPU schedules with the same blocks, threads and elements per thread along every axis,
// and with reduction steps of the same length. Schedules with equal hashes differ only in the order
// in which a thread works, and in the compiler's code for it.
uint64_t BlockShapesHash(const Individual& individual);
uint64_t OuterTilesHash(const Individual& individual);
// Hash of the rows: equal for programs that no model can tell apart.
uint64_t RowsHash(const Individual& individual);

}  // namespace kiln::search
