#include "search/crossover.h"

#include <algorithm>
#include <map>

#include "compiler/schedule/steps/steps.h"
#include "search/fragments.h"
#include "search/min_blocks.h"
#include "search/sample_unroll.h"

namespace kiln::search {
namespace {

using schedule::SplitStep;
using schedule::StepPtr;

constexpr double kStrayProbability = 0.15;  // one split goes another way than the rest of its stage

// The same step but for its choice.
bool Correspond(const schedule::Step& a, const schedule::Step& b) {
  if (a.tag() != b.tag() || a.stage() != b.stage()) return false;
  if (a.tag() == SplitStep::kTag) {
    const auto& x = static_cast<const SplitStep&>(a);
    const auto& y = static_cast<const SplitStep&>(b);
    return x.loop == y.loop && x.lengths.size() == y.lengths.size() &&
           x.inner_to_outer == y.inner_to_outer;
  }
  if (a.tag() == schedule::BufferingStep::kTag || a.tag() == schedule::LayoutStep::kTag)
    return true;
  if (a.tag() == schedule::StorageAlignStep::kTag) return true;
  return a.Hash() == b.Hash() || (UnrollDepth(a) && UnrollDepth(b)) ||
         (MinBlocksOf(a) && MinBlocksOf(b)) || (FragmentsOf(a) && FragmentsOf(b));
}

}  // namespace

StatusOr<std::vector<StepPtr>> Cross(std::span<const StepPtr> a, std::span<const StepPtr> b,
                                     Rng& rng) {
  std::vector<size_t> differ;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && Correspond(*a[i], *b[i]); ++i) {
    if (a[i]->Hash() != b[i]->Hash()) differ.push_back(i);
  }
  if (differ.size() < 2) return NotFound("the parents differ in fewer than two choices");
  std::vector<StepPtr> child(a.begin(), a.end());
  std::map<int, bool> from_b;  // by stage
  size_t taken = 0;
  for (size_t i : differ) {
    const auto [stage, inserted] = from_b.try_emplace(a[i]->stage(), false);
    if (inserted) stage->second = Chance(rng, 0.5);
    if (stage->second == Chance(rng, kStrayProbability)) continue;
    child[i] = b[i];
    ++taken;
  }
  if (taken == 0 || taken == differ.size())
    return FailedPrecondition("the child is one of its parents");
  return child;
}

}  // namespace kiln::search
