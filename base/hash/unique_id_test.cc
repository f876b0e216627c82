#include "base/hash/unique_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace kiln {
namespace {

TEST(UniqueIdTest, DoNotRepeat) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(UniqueId());
  EXPECT_EQ(seen.size(), 1000u);
  for (const std::string& id : seen) EXPECT_THAT(id, testing::MatchesRegex("[0-9a-f]{16}"));
}

TEST(UniqueIdTest, AnyLength) {
  for (int digits : {0, 1, 7, 16, 33}) {
    Rng rng(1);
    EXPECT_EQ(UniqueId(digits).size(), static_cast<size_t>(digits));
    EXPECT_EQ(UniqueId(rng, digits).size(), static_cast<size_t>(digits));
  }
}

TEST(UniqueIdTest, ASeedGivesTheSameIds) {
  Rng a(5), b(5);
  const std::string first = UniqueId(a);
  EXPECT_EQ(first, UniqueId(b));
  EXPECT_NE(first, UniqueId(a));
}

}  // namespace
}  // namespace kiln
