#include "search/evolution/tile_moves.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/numbers/integers.h"
#include "compiler/schedule/steps/steps.h"
#include "search/evolution/rebuild.h"
#include "search/space/factorization.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/thread_shapes.h"
#include "search/space/uneven_tiles.h"

namespace kiln::search {
namespace {

using schedule::As;
using schedule::SplitStep;
using schedule::StepPtr;

bool HasBlank(const schedule::Step& step) {
  const auto* split = As<SplitStep>(step);
  return split != nullptr && std::ranges::find(split->lengths, 0) != split->lengths.end();
}

// Tells whether the blocks of a cluster share out the elements of this split. As for a reduction, a
// later step follows the split.
bool IsClusterSplit(std::span<const StepPtr> steps, int number) {
  return std::ranges::any_of(steps, [number](const StepPtr& step) {
    const auto* follow = As<schedule::FollowFusedSplitStep>(*step);
    return follow != nullptr && follow->level == 0 && follow->src_steps.size() == 1 &&
           follow->src_steps[0] == number;
  });
}

// Draws a factor of n > 1: a prime factor, each in proportion to its power, or any divisor but 1.
int64_t RandomFactor(int64_t n, double prime_prob, Rng& rng) {
  if (!Chance(rng, prime_prob)) {
    const std::vector<int64_t> divisors = Divisors(n);
    return divisors[1 + UniformInt(rng, static_cast<int64_t>(divisors.size()) - 1)];
  }
  std::vector<int64_t> primes;
  for (int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) primes.push_back(p);
  }
  if (n > 1) primes.push_back(n);
  return PickFrom(rng, primes);
}

class Mover {
 public:
  Mover(std::vector<Tiles>& all, const Parameters& parameters, Rng& rng)
      : all_(all), parameters_(parameters), rng_(rng) {}

  // Each move changes nothing if the draw is not possible.
  void MoveFactor() {
    const int t = PickSplit();
    const int from = PickLevel(all_[t], [](int64_t length) { return length > 1; });
    const int to = OtherLevel(all_[t], from);
    const int64_t factor = Factor(all_[t].levels[from]);
    Move(all_[t], from, to, factor);
  }

  void Exchange() {
    const int a = PickSplit(), b = PickSplit();
    if (a == b || all_[a].levels.size() != all_[b].levels.size()) return;
    const int from = PickLevel(all_[a], [](int64_t length) { return length > 1; });
    const int to = OtherLevel(all_[a], from);
    const int64_t factor = Factor(all_[a].levels[from]);
    if (all_[b].levels[to] % factor != 0) return;
    const Tiles before = all_[a];
    if (!Move(all_[a], from, to, factor)) return;
    if (!Move(all_[b], to, from, factor)) all_[a] = before;
  }

  void DrawAnew() {
    Tiles& tiles = all_[PickSplit()];
    const std::vector<int64_t> before = tiles.levels;
    const int64_t extent = tiles.uneven
                               ? PickTileExtent(TileExtents(tiles.extent), parameters_, rng_)
                               : tiles.covered();
    const std::vector<int64_t> lengths = RandomFactorization(
        extent, static_cast<int>(tiles.levels.size()) - 1,
        tiles.limit_innermost ? parameters_.max_innermost_split_factor : extent, rng_);
    tiles.levels[0] = extent;
    for (size_t i = 0; i < lengths.size(); ++i) {
      tiles.levels[i + 1] = lengths[i];
      tiles.levels[0] /= lengths[i];
    }
    KeepIfAllowed(tiles, before);
  }

  bool AnyUneven() const {
    return std::ranges::any_of(all_, [](const Tiles& tiles) { return tiles.uneven; });
  }

  void Round() {
    std::vector<int> splits;
    for (int t = 0; t < static_cast<int>(all_.size()); ++t) {
      if (all_[t].uneven) splits.push_back(t);
    }
    Tiles& tiles = all_[PickFrom(rng_, splits)];
    const std::vector<int64_t> before = tiles.levels;
    const auto inner = static_cast<int64_t>(tiles.levels.size()) - 1;
    int64_t& length = tiles.levels[1 + UniformInt(rng_, inner)];
    const auto n = static_cast<uint64_t>(length);
    length = static_cast<int64_t>(n == 1 || Chance(rng_, 0.5) ? std::bit_ceil(n + 1)
                                                              : std::bit_floor(n - 1));
    KeepIfAllowed(tiles, before);
  }

 private:
  int64_t Factor(int64_t length) {
    return RandomFactor(length, parameters_.tile_prime_factor_prob, rng_);
  }

  // Keeps the tiles if they are allowed, else restores `before`. Uneven tiles cover an axis with as
  // few outermost tiles as possible.
  bool KeepIfAllowed(Tiles& tiles, const std::vector<int64_t>& before) const {
    if (tiles.uneven) {
      CutLengths(std::span(tiles.levels).subspan(1), tiles.extent, tiles.kept);
      const int64_t tile = tiles.covered() / tiles.levels[0];
      tiles.levels[0] = CeilDiv(tiles.extent, tile);
    }
    if (Allowed(tiles)) return true;
    tiles.levels = before;
    return false;
  }

  int PickSplit() { return static_cast<int>(UniformInt(rng_, static_cast<int64_t>(all_.size()))); }

  int PickLevel(const Tiles& tiles, const std::function<bool(int64_t)>& wanted) {
    std::vector<int> levels;
    for (int i = 0; i < static_cast<int>(tiles.levels.size()); ++i) {
      if (wanted(tiles.levels[i])) levels.push_back(i);
    }
    return PickFrom(rng_, levels);
  }

  int OtherLevel(const Tiles& tiles, int level) {
    const int other =
        static_cast<int>(UniformInt(rng_, static_cast<int64_t>(tiles.levels.size()) - 1));
    return other < level ? other : other + 1;
  }

  bool Allowed(const Tiles& tiles) const {
    if (tiles.limit_innermost && tiles.levels.back() > parameters_.max_innermost_split_factor)
      return false;
    if (tiles.uneven && !IsAcceptable(tiles.covered(), tiles.extent)) return false;
    if (!tiles.parts_level) return true;
    const int64_t parts = tiles.levels[*tiles.parts_level];
    if (tiles.is_cluster) return std::ranges::find(kClusterSizes, parts) != std::end(kClusterSizes);
    return parts >= 2 && parts <= tiles.most_parts;
  }

  bool Move(Tiles& tiles, int from, int to, int64_t factor) const {
    const std::vector<int64_t> before = tiles.levels;
    tiles.levels[from] /= factor;
    tiles.levels[to] *= factor;
    return KeepIfAllowed(tiles, before);
  }

  std::vector<Tiles>& all_;
  const Parameters& parameters_;
  Rng& rng_;
};

}  // namespace

int64_t Tiles::covered() const { return ProductOfCounts(levels); }

std::vector<Tiles> TilesOf(std::span<const StepPtr> steps, std::span<const StepPtr> sketch) {
  std::vector<Tiles> all;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto* found = As<SplitStep>(*steps[i]);
    if (found == nullptr || IsThreadSplit(steps, i) || IsFetchSplit(steps, i) ||
        (i < sketch.size() && !HasBlank(*sketch[i]))) {
      continue;
    }
    const SplitStep& split = *found;
    const int64_t product = ProductOfCounts(split.lengths);
    if (split.extent <= 1 || split.lengths.empty() || product <= 0) continue;
    Tiles tiles{.step = static_cast<int>(i), .levels = split.lengths, .extent = split.extent};
    tiles.levels.insert(split.inner_to_outer ? tiles.levels.begin() : tiles.levels.end(),
                        CeilDiv(split.extent, product));
    // The last length of a reduction that is split from the outside in is the number of its parts.
    if (!split.inner_to_outer && i + 1 < steps.size() &&
        schedule::Is<schedule::RfactorStep>(*steps[i + 1])) {
      tiles.parts_level = static_cast<int>(split.lengths.size()) - 1;
      tiles.limit_innermost = split.lengths.size() > 1;
      // Sampling gives few columns more parts.
      tiles.most_parts = SharesRowsOut(steps, i)
                             ? kMostRowParts
                             : std::max<int64_t>(kMostParts, split.lengths.back());
      tiles.is_cluster = IsClusterSplit(steps, static_cast<int>(i));
    }
    all.push_back(std::move(tiles));
  }
  return all;
}

schedule::StepPtr WithTiles(const schedule::StepPtr& step, const Tiles& tiles) {
  const SplitStep& split = *As<SplitStep>(*step);
  const auto begin = tiles.levels.begin() + (split.inner_to_outer ? 1 : 0);
  return std::make_shared<SplitStep>(
      split.stage_id, split.loop, split.extent,
      std::vector<int64_t>(begin, begin + static_cast<std::ptrdiff_t>(split.lengths.size())),
      split.inner_to_outer);
}

std::vector<int> MoveTiles(std::vector<Tiles>& all, const Parameters& parameters, Rng& rng) {
  if (all.empty()) return {};
  const std::vector<Tiles> before = all;
  Mover mover(all, parameters, rng);
  const double single = parameters.tile_single_move_prob,
               several = single + parameters.tile_several_moves_prob,
               exchange = several + parameters.tile_exchange_prob;
  const double kind = UniformReal(rng);
  if (mover.AnyUneven() && Chance(rng, parameters.tile_round_prob)) {
    mover.Round();
  } else if (kind < single) {
    mover.MoveFactor();
  } else if (kind < several) {
    const int64_t moves = UniformIn(rng, 2, 4);
    for (int64_t i = 0; i < moves; ++i) mover.MoveFactor();
  } else if (kind < exchange) {
    mover.Exchange();
  } else {
    mover.DrawAnew();
  }
  std::vector<int> changed;
  // Several moves may undo each other, so the lengths are compared.
  for (int t = 0; t < static_cast<int>(all.size()); ++t) {
    if (all[t].levels != before[t].levels) changed.push_back(t);
  }
  return changed;
}

}  // namespace kiln::search
