#include "runtime/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/numbers/rng.h"

namespace kiln::runtime {
namespace {

using testing::ElementsAre;

// Checks by the plain definition, pair by pair.
bool Overlaps(std::span<const MemoryNeed> needs, std::span<const int64_t> offsets) {
  for (size_t a = 0; a < needs.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const bool in_time = needs[a].first <= needs[b].last && needs[b].first <= needs[a].last;
      const bool in_space =
          offsets[a] < offsets[b] + needs[b].bytes && offsets[b] < offsets[a] + needs[a].bytes;
      if (in_time && in_space) return true;
    }
  }
  return false;
}

// Returns the smallest arena of all plans with the offsets 0, 1, 2, ...
int64_t LeastArena(std::span<const MemoryNeed> needs, int64_t most) {
  std::vector<int64_t> offsets;
  int64_t best = most;
  const std::function<void(int64_t)> search = [&](int64_t arena) {
    if (arena >= best || Overlaps(needs.first(offsets.size()), offsets)) return;
    if (offsets.size() == needs.size()) {
      best = arena;
      return;
    }
    const MemoryNeed& need = needs[offsets.size()];
    for (int64_t offset = 0; offset + need.bytes < best; offset += need.alignment_bytes) {
      offsets.push_back(offset);
      search(std::max(arena, offset + need.bytes));
      offsets.pop_back();
    }
  };
  search(0);
  return best;
}

std::vector<MemoryNeed> RandomNeeds(Rng& rng, int64_t count, int64_t most_bytes,
                                    int64_t most_alignment_log2) {
  std::vector<MemoryNeed> needs;
  for (int64_t i = 0; i < count; ++i) {
    const auto first = static_cast<int32_t>(UniformInt(rng, count));
    needs.push_back({.bytes = UniformIn(rng, 1, most_bytes),
                     .alignment_bytes = int64_t{1} << UniformIn(rng, 0, most_alignment_log2),
                     .first = first,
                     .last = first + static_cast<int32_t>(UniformInt(rng, 4))});
  }
  return needs;
}

TEST(MemoryPlanTest, ChainsUseTwoPlaces) {
  const std::vector<MemoryNeed> needs = {{100, 64, 0, 1}, {50, 64, 1, 2}, {100, 64, 2, 3}};
  const MemoryPlan plan = PlanMemory(needs);
  EXPECT_THAT(plan.offsets, ElementsAre(64, 0, 64));
  EXPECT_EQ(plan.bytes, 164);
  EXPECT_EQ(PeakBytes(needs), 150);
}

TEST(MemoryPlanTest, NothingNeedsNothing) {
  EXPECT_EQ(PlanMemory({}).bytes, 0);
  EXPECT_EQ(PeakBytes({}), 0);
  EXPECT_FALSE(FindConflict({}, {}));
}

TEST(MemoryPlanTest, FewBuffersHaveTheLeastArena) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    const auto needs = RandomNeeds(rng, UniformIn(rng, 1, 5), 6, 1);
    const MemoryPlan plan = PlanMemory(needs);
    EXPECT_EQ(plan.bytes, LeastArena(needs, plan.bytes + 1)) << "seed " << seed;
  }
}

TEST(MemoryPlanTest, ManyBuffersNeverOverlap) {
  double worst = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const auto needs = RandomNeeds(rng, UniformIn(rng, 1, 200), 1 << 20, 8);
    const MemoryPlan plan = PlanMemory(needs);
    ASSERT_FALSE(Overlaps(needs, plan.offsets)) << "seed " << seed;
    ASSERT_FALSE(FindConflict(needs, plan.offsets)) << "seed " << seed;
    for (size_t i = 0; i < needs.size(); ++i) {
      ASSERT_EQ(plan.offsets[i] % needs[i].alignment_bytes, 0) << "seed " << seed;
      ASSERT_LE(plan.offsets[i] + needs[i].bytes, plan.bytes) << "seed " << seed;
    }
    worst =
        std::max(worst, static_cast<double>(plan.bytes) / static_cast<double>(PeakBytes(needs)));
  }
  // Multiple of the bytes that are live at once.
  EXPECT_LT(worst, 1.4);
}

TEST(MemoryPlanTest, CheckAgreesWithTheDefinition) {
  int refused = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed);
    const auto needs = RandomNeeds(rng, UniformIn(rng, 1, 8), 6, 0);
    std::vector<int64_t> offsets;
    for (size_t i = 0; i < needs.size(); ++i) offsets.push_back(UniformInt(rng, 24));
    const bool found = FindConflict(needs, offsets).has_value();
    ASSERT_EQ(found, Overlaps(needs, offsets)) << "seed " << seed;
    refused += found;
  }
  EXPECT_GT(refused, 200);
  EXPECT_LT(refused, 1800);
}

TEST(MemoryPlanTest, AConflictNamesBoth) {
  const std::vector<MemoryNeed> needs = {{8, 1, 0, 3}, {8, 1, 2, 4}};
  const std::vector<int64_t> offsets = {0, 7};
  const auto conflict = FindConflict(needs, offsets);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->a, 0u);
  EXPECT_EQ(conflict->b, 1u);
  EXPECT_EQ(conflict->at, 2);
}

}  // namespace
}  // namespace kiln::runtime
