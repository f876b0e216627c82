#include "scheduler/library_computations.h"

#include "compiler/dag/ops/known_workloads.h"

namespace kiln::scheduler {

std::vector<store::Computation> LibraryComputations() {
  std::vector<store::Computation> all;
  for (const dag::KnownComputation& known : dag::KnownComputations()) {
    all.push_back(
        {.id = known.id, .key = known.key, .dag = known.text, .flop_count = known.flop_count});
  }
  return all;
}

}  // namespace kiln::scheduler
