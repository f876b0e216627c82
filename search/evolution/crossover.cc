#include "search/evolution/crossover.h"

#include <algorithm>
#include <map>

namespace kiln::search {
namespace {

using schedule::StepPtr;

}  // namespace

StatusOr<std::vector<StepPtr>> Cross(std::span<const StepPtr> a, std::span<const StepPtr> b,
                                     const Parameters& parameters, Rng& rng) {
  std::vector<size_t> differ;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i]->ShapeHash() == b[i]->ShapeHash();
       ++i) {
    if (a[i]->Hash() != b[i]->Hash()) differ.push_back(i);
  }
  if (differ.size() < 2) return NotFound("the parents differ in fewer than two choices");
  std::vector<StepPtr> child(a.begin(), a.end());
  std::map<int, bool> from_b;  // key: stage
  size_t taken = 0;
  for (size_t i : differ) {
    const auto [stage, inserted] = from_b.try_emplace(a[i]->stage(), false);
    if (inserted) stage->second = Chance(rng, 0.5);
    if (stage->second == Chance(rng, parameters.crossover_stray_prob)) continue;
    child[i] = b[i];
    ++taken;
  }
  if (taken == 0 || taken == differ.size())
    return FailedPrecondition("the child is one of its parents");
  return child;
}

}  // namespace kiln::search
