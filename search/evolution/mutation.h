// Makes one small change of a schedule. The kinds for tile sizes, unrolling, parallel loops and
// compute locations are those of Ansor (OSDI 2020, section 5.1).
//
// A mutation edits the list of steps, and Rebuild (rebuild.h) makes a state of the list. Good
// schedules are near other good ones, so most changes are the smallest possible: one prime factor
// of one tile.
#pragma once

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/numbers/rng.h"
#include "compiler/ir/hints.h"
#include "compiler/schedule/state.h"
#include "search/space/parameters.h"
#include "search/space/task.h"

namespace kiln::search {

// The kind of a mutation: either a hint (stage_hints.h), or one of the kinds below.
struct MutationKind {
  enum Of : uint8_t {
    kTileSize,         // factors move between the levels of a split; the tile of an online softmax
    kHint,             // another value of a hint
    kThreads,          // GPU: the shape of a kernel that is not tiled (thread_shapes.h)
    kFetchWidth,       // GPU: elements that a thread fetches at once into shared memory
    kBuffering,        // GPU: how far ahead of their use tiles are fetched, and in which way
    kLayout,           // GPU: another axis of a tile in shared memory innermost, or other padding
    kComputeLocation,  // CPU
    kParallel,         // CPU: how many outer loops run in parallel
    kVectorize,        // CPU: how many inner loops are one vector
  };
  Of of = kTileSize;
  ir::Hint hint = {};  // for kHint: the hint that changes

  constexpr MutationKind(Of of) : of(of) {}
  constexpr MutationKind(ir::Hint hint) : of(kHint), hint(hint) {}
  auto operator<=>(const MutationKind&) const = default;
};
std::string_view MutationName(MutationKind kind);  // "tile sizes"
// Lists all kinds that Mutate chooses from.
std::vector<MutationKind> MutationKinds(const Task& task, const Parameters& parameters);

struct Mutation {
  MutationKind kind = MutationKind::kTileSize;
  std::vector<schedule::StepPtr> steps;
  // Number of the changed step, or of the first of several. None: the last part changed.
  std::optional<int> step = {};
};

// A schedule and its sketch. `steps` begins with the steps of `sketch`, which have blanks instead
// of tile lengths; the blanks tell which splits have a choice. On a CPU the steps after the sketch
// place stages and annotate loops, and are made anew when a place or a loop changes. If the sketch
// is not known, `sketch` is empty; then only tile sizes, hints, threads and fetch widths are
// mutated.
struct Genome {
  std::span<const schedule::StepPtr> steps;
  std::span<const schedule::StepPtr> sketch = {};
};

// Draws a kind by weight, among the kinds that apply to the schedule. NotFound if nothing in the
// schedule can change. FailedPrecondition if this draw changed nothing; then try again.
StatusOr<Mutation> Mutate(const Task& task, const Parameters& parameters, const Genome& genome,
                          Rng& rng);
// Mutates by the given kind.
StatusOr<Mutation> MutateAs(MutationKind kind, const Task& task, const Parameters& parameters,
                            const Genome& genome, Rng& rng);

// Names the stage, and the loop of the original axes, that a step works on: "conv2d_nhwc.rc". "" if
// there is no such name.
std::string SubjectOfStep(const dag::DagPtr& dag, std::span<const schedule::StepPtr> steps,
                          int step);

}  // namespace kiln::search
