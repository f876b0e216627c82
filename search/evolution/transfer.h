// Carries a schedule of one computation over to another that does the same sums, with other
// elementwise stages around them. These stages have other numbers, and more or fewer of them are
// inlined.
//
// Networks have many such tasks: one convolution with different epilogues. A schedule that is fast
// for one of them is fast for the others.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/schedule/step.h"
#include "search/space/sketch.h"

namespace kiln::search {

// Returns a schedule of this sketch, which belongs to another computation, with the tile lengths,
// hints and annotations of `steps`. The result need not apply: it ends with Rebuild (rebuild.h).
// NotFound if the steps were not made of a sketch like this one. Cost: microseconds.
StatusOr<std::vector<schedule::StepPtr>> TransferSteps(std::span<const schedule::StepPtr> steps,
                                                       const Sketch& sketch);

// Returns a key that is equal for computations with the same sums: over the same axes, of the same
// terms. "" if there are no sums.
std::string SumsKey(const dag::Dag& dag);

}  // namespace kiln::search
