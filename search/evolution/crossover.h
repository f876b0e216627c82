// A child of two schedules of the same sketch: the tile lengths and unroll depths of some stages
// from one, of the others from the other.
#pragma once

#include <span>
#include <vector>

#include "base/rng.h"
#include "compiler/schedule/step.h"
#include "search/space/parameters.h"

namespace kiln::search {

// The steps of `a` with choices of `b` where their steps correspond: most often all or none of one
// stage's. Places and annotations stay those of `a`. Ends with Rebuild (rebuild.h).
// NotFound: they do not differ in such a choice; FailedPrecondition: the child is one of its
// parents, try again.
StatusOr<std::vector<schedule::StepPtr>> Cross(std::span<const schedule::StepPtr> a,
                                               std::span<const schedule::StepPtr> b,
                                               const Parameters& parameters, Rng& rng);

}  // namespace kiln::search
