// One small change of a schedule (facts §3.9 "Mutation rules").
//
// A mutation edits the list of steps; Rebuild (rebuild.h) makes a state of it. Good schedules lie
// near good ones, so most changes are the smallest there are: one prime factor of one tile.
#pragma once

#include <compare>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "compiler/ir/hints.h"
#include "compiler/schedule/state.h"
#include "search/parameters.h"
#include "search/task.h"

namespace kiln::search {

// Of a hint (stage_hints.h), or one of these.
struct MutationKind {
  enum Of : uint8_t {
    kTileSize,         // factors move between the levels of a split
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
  ir::Hint hint = {};  // kHint: which

  constexpr MutationKind(Of of) : of(of) {}
  constexpr MutationKind(ir::Hint hint) : of(kHint), hint(hint) {}
  auto operator<=>(const MutationKind&) const = default;
};
std::string_view MutationName(MutationKind kind);  // "tile sizes"
// All that Mutate chooses from.
std::vector<MutationKind> MutationKinds(bool gpu);

struct Mutation {
  MutationKind kind = MutationKind::kTileSize;
  std::vector<schedule::StepPtr> steps;
  int step = -1;  // number of the one that was changed, the first of several; -1: the last part
};

// `sketch`: the steps with blanks that `steps` begins with. It tells which splits have a choice; on
// a CPU the steps after it place stages and annotate loops, which is made anew when a place or a
// loop changes. Empty: not known, then only tiles, depths, threads and widths change.
struct Genome {
  std::span<const schedule::StepPtr> steps;
  std::span<const schedule::StepPtr> sketch = {};
};

// Of a kind by weight among those that the schedule has a use for. NotFound: it has nothing that
// could change; FailedPrecondition: this change came to nothing, try again.
StatusOr<Mutation> Mutate(const Task& task, const Parameters& parameters, const Genome& genome,
                          Rng& rng);
// Of one kind.
StatusOr<Mutation> MutateAs(MutationKind kind, const Task& task, const Parameters& parameters,
                            const Genome& genome, Rng& rng);

// "conv2d_nhwc.rc": the stage, and the loop of the original axes, that a step works on; "" when it
// cannot be said.
std::string SubjectOfStep(const dag::DagPtr& dag, std::span<const schedule::StepPtr> steps,
                          int step);

}  // namespace kiln::search
