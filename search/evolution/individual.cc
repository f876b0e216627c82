#include "search/evolution/individual.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash/digest.h"
#include "base/numbers/rng.h"
#include "compiler/schedule/steps/steps.h"
#include "search/evolution/rebuild.h"
#include "search/evolution/tile_moves.h"

namespace kiln::search {
namespace {

using schedule::As;
using schedule::Is;
using schedule::SplitStep;
using schedule::Step;

// Tells whether the step has tile lengths.
bool IsTile(const Step& step) {
  return Is<SplitStep>(step) || Is<schedule::OnlineSoftmaxStep>(step);
}

// Tells whether two steps have the same structure. Tile lengths may differ.
bool SameShape(const Step& a, const Step& b) {
  return IsTile(a) ? a.ShapeHash() == b.ShapeHash() : a.Hash() == b.Hash();
}

bool BeginsWith(std::span<const schedule::StepPtr> steps,
                std::span<const schedule::StepPtr> beginning) {
  if (steps.size() < beginning.size()) return false;
  for (size_t i = 0; i < beginning.size(); ++i) {
    if (!SameShape(*steps[i], *beginning[i])) return false;
  }
  return true;
}

std::string Ancestor(std::optional<int64_t> number, bool earlier) {
  if (!number.has_value()) return "a random one";
  return fmt::format("{} {}", earlier ? "record" : "trial", *number);
}

// Begins a hash of tiles, so that schedules of different sketches differ.
uint64_t HashOfSketch(const Individual& individual) {
  return MixBits(static_cast<uint64_t>(individual.sketch.value_or(-1)));
}

}  // namespace

int UnitKindOf(std::span<const schedule::StepPtr> steps) {
  int32_t unit = 0, bulk = 0;
  for (const schedule::StepPtr& step : steps) {
    if (const auto* online = schedule::As<schedule::OnlineSoftmaxStep>(*step))
      unit = static_cast<int32_t>(online->tile.matrix_unit);
    unit = std::max(unit, schedule::HintOf(*step, ir::Hint::kMatrixUnit).value_or(0));
    bulk = std::max(bulk, schedule::HintOf(*step, ir::Hint::kBulkCopies).value_or(0));
  }
  return unit == 2 && bulk > 0 ? 3 : unit;
}

Individual MakeIndividual(schedule::State state, std::optional<int> sketch, Origin origin) {
  Individual individual{.steps = state.steps(),
                        .hash = schedule::HashSteps(state.steps()),
                        .sketch = sketch,
                        .unit_kind = UnitKindOf(state.steps()),
                        .origin = origin};
  individual.state = std::make_shared<const schedule::State>(std::move(state));
  return individual;
}

std::optional<int> SketchOf(std::span<const schedule::StepPtr> steps,
                            std::span<const Sketch> sketches) {
  std::optional<int> found;  // the longest one, as a sketch may be the beginning of another
  for (int i = 0; i < static_cast<int>(sketches.size()); ++i) {
    if (!BeginsWith(steps, sketches[i].steps)) continue;
    if (!found || sketches[i].steps.size() > sketches[*found].steps.size()) found = i;
  }
  return found;
}

std::string Describe(const Individual& individual, const dag::DagPtr& dag) {
  const Origin& origin = individual.origin;
  const std::string sketch =
      individual.sketch ? fmt::format("sketch {}", *individual.sketch) : "no sketch";
  if (origin.kind == Origin::kRandom) return sketch + ", random";
  if (origin.kind == Origin::kRule) return sketch + ", by rule";
  const std::string ancestor = Ancestor(origin.trial, origin.earlier);
  if (origin.kind == Origin::kTransferred)
    return fmt::format("{}, as {} of another task", sketch, ancestor);
  if (origin.kind == Origin::kMeasured) return fmt::format("{}, {}", sketch, ancestor);
  const std::string changes =
      origin.changes == 1 ? "1 change" : fmt::format("{} changes", origin.changes);
  if (origin.kind == Origin::kCrossover) {
    return fmt::format("{}, crossover of the lines of {} and {}, {}", sketch, ancestor,
                       Ancestor(origin.other_trial, origin.other_earlier), changes);
  }
  const std::string subject =
      origin.step ? SubjectOfStep(dag, individual.steps, *origin.step) : std::string();
  return fmt::format("{}, {}{}, {} from {}", sketch, MutationName(origin.mutation),
                     subject.empty() ? "" : " of " + subject, changes, ancestor);
}

uint64_t TilesHash(const Individual& individual) {
  uint64_t hash = HashOfSketch(individual);
  for (const schedule::StepPtr& step : individual.steps) {
    if (IsTile(*step)) hash = MixBits(hash ^ step->Hash());
  }
  return hash;
}

namespace {
// Hashes the lengths of all splits but those of fetches. `shape_of` changes each list before.
template <typename ShapeOf>
uint64_t ShapesHash(const Individual& individual, const ShapeOf& shape_of) {
  uint64_t hash = HashOfSketch(individual);
  const auto add = [&](int64_t number) { hash = MixBits(hash ^ static_cast<uint64_t>(number)); };
  for (size_t i = 0; i < individual.steps.size(); ++i) {
    const auto* split = As<SplitStep>(*individual.steps[i]);
    if (split == nullptr || IsFetchSplit(individual.steps, i)) continue;
    std::vector<int64_t> lengths = split->lengths;
    if (split->inner_to_outer && lengths.size() > 1) shape_of(lengths);
    add(split->stage_id);
    add(split->loop);
    for (int64_t length : lengths) add(length);
  }
  return hash;
}

void JoinLast(std::vector<int64_t>& lengths) {
  const int64_t inner = lengths.back();
  lengths.pop_back();
  lengths.back() *= inner;
}
}  // namespace

uint64_t TileShapesHash(const Individual& individual) {
  if (!ThreadsOfTiles(individual.steps)) return TilesHash(individual);
  return ShapesHash(individual, JoinLast);
}

uint64_t BlockShapesHash(const Individual& individual) {
  if (!ThreadsOfTiles(individual.steps)) return TilesHash(individual);
  return ShapesHash(individual, [](std::vector<int64_t>& lengths) {
    // The lengths are virtual threads, threads, and two levels of a thread's tile; or two levels of
    // a reduction.
    JoinLast(lengths);
    if (lengths.size() == 3) {
      lengths[0] *= lengths[2];
      lengths.pop_back();
    }
  });
}

uint64_t OuterTilesHash(const Individual& individual) {
  uint64_t hash = HashOfSketch(individual);
  for (const schedule::StepPtr& step : individual.steps) {
    const auto* const online = As<schedule::OnlineSoftmaxStep>(*step);
    if (online == nullptr) continue;
    const int rows = online->tile.rows * online->tile.warps;
    hash = MixBits(MixBits(hash ^ static_cast<uint64_t>(rows)) ^
                   static_cast<uint64_t>(online->tile.keys));
  }
  for (const Tiles& tiles : TilesOf(individual.steps))
    hash = MixBits(hash ^ MixBits(static_cast<uint64_t>(tiles.step)) ^
                   static_cast<uint64_t>(tiles.levels[0]));
  return hash;
}

uint64_t RowsHash(const Individual& individual) {
  const std::span<const float> values = individual.rows->values();
  return Xxh3({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

}  // namespace kiln::search
