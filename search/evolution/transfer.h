// A schedule of one computation for another that does the same sums: with other elementwise stages
// around them, so that stages have other numbers and more or fewer of them are inlined.
//
// Networks have many such tasks: one convolution with different epilogues. What is fast for one is
// fast for the others.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/schedule/step.h"
#include "search/space/sketch.h"

namespace kiln::search {

// The steps as a schedule made of this sketch of another computation: its structure, with the tile
// lengths, hints and annotations of `steps`. The result need not apply: it ends with Rebuild
// (rebuild.h). NotFound: the steps were not made of a sketch like this one. Cost: microseconds.
StatusOr<std::vector<schedule::StepPtr>> TransferSteps(std::span<const schedule::StepPtr> steps,
                                                       const Sketch& sketch);

// Equal for computations whose sums are the same: over which axes, and of what. "": there are none.
std::string SumsKey(const dag::Dag& dag);

}  // namespace kiln::search
