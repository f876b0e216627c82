#include "search/space/uneven_tiles.h"

#include <algorithm>

#include "base/numbers/integers.h"
#include "search/space/factorization.h"

namespace kiln::search {
namespace {

// Virtual threads and threads.
constexpr size_t kBoundLevels = 2;
// Axes up to this are a tile whole, or a vector with a mask: on a CPU no uneven tile was better.
constexpr int64_t kMostWhole = 8;
// Windows of pooling and convolution are shorter.
constexpr int64_t kLeastReduction = 12;

size_t SplitsOf(const std::string& tiling, char letter) {
  return static_cast<size_t>(std::count(tiling.begin(), tiling.end(), letter)) - 1;
}

}  // namespace

bool HasPoorDivisors(int64_t extent) {
  const std::vector<int64_t> divisors = Divisors(extent);
  for (int64_t size = 4; size <= std::min<int64_t>(extent, 32); size *= 2) {
    const auto near = std::lower_bound(divisors.begin(), divisors.end(), size * 3 / 4);
    if (near == divisors.end() || *near > size) return true;
  }
  return false;
}

std::vector<int64_t> TileExtents(int64_t extent) {
  std::vector<int64_t> extents = {extent};
  if (!HasPoorDivisors(extent)) return extents;
  for (int64_t unit = 2; unit <= 32; unit *= 2) {
    const int64_t covered = RoundUp(extent, unit);
    if (covered > extents.back() && IsAcceptable(covered, extent)) extents.push_back(covered);
  }
  return extents;
}

int64_t PickTileExtent(std::span<const int64_t> extents, const Parameters& parameters, Rng& rng) {
  // Of short ones there are several in most tasks that have them, and a search is to see all whole.
  const double share =
      extents[0] <= kMostWhole ? parameters.uneven_short_tile_prob : parameters.uneven_tile_prob;
  if (extents.size() == 1 || !Chance(rng, share)) return extents[0];
  return PickFrom(rng, extents.subspan(1));
}

bool MayBeUneven(std::span<const schedule::StepPtr> steps, size_t i, bool gpu,
                 const Parameters& parameters) {
  const auto* found = schedule::As<schedule::SplitStep>(*steps[i]);
  if (!parameters.uneven_tiles || found == nullptr) return false;
  const schedule::SplitStep& split = *found;
  if (!split.inner_to_outer || (!gpu && split.extent <= kMostWhole)) return false;
  const bool makes_parts =
      i + 1 < steps.size() && schedule::Is<schedule::RfactorStep>(*steps[i + 1]);
  if (makes_parts) return !gpu;
  const std::string& tiling = gpu ? parameters.gpu_tiling : parameters.cpu_tiling;
  if (split.lengths.size() == SplitsOf(tiling, 'S')) return true;
  return gpu && split.lengths.size() == SplitsOf(tiling, 'R') && split.extent >= kLeastReduction;
}

size_t KeptLengths(const schedule::SplitStep& split, bool gpu, const Parameters& parameters) {
  const bool spatial = split.lengths.size() == SplitsOf(parameters.gpu_tiling, 'S');
  return gpu && spatial ? std::min(kBoundLevels, split.lengths.size()) : 0;
}

void CutLengths(std::span<int64_t> lengths, int64_t extent, size_t kept) {
  for (size_t i = lengths.size(); i-- > kept;) {
    lengths[i] = std::min(lengths[i], extent);
    extent = CeilDiv(extent, lengths[i]);
  }
}

}  // namespace kiln::search
