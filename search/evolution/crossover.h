// Makes a child of two schedules of the same sketch. Tile lengths and unroll depths of some stages
// come from one parent, those of the other stages from the other parent.
#pragma once

#include <span>
#include <vector>

#include "base/numbers/rng.h"
#include "compiler/schedule/step.h"
#include "search/space/parameters.h"

namespace kiln::search {

// Returns the steps of `a` with choices of `b` where their steps correspond: most often all or none
// of the choices of a stage. Places and annotations stay those of `a`. Ends with Rebuild
// (rebuild.h). NotFound if the parents differ in fewer than two such choices. FailedPrecondition if
// the child equals one of its parents; then try again.
StatusOr<std::vector<schedule::StepPtr>> Cross(std::span<const schedule::StepPtr> a,
                                               std::span<const schedule::StepPtr> b,
                                               const Parameters& parameters, Rng& rng);

}  // namespace kiln::search
