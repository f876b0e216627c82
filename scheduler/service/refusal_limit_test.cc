#include "scheduler/service/refusal_limit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::scheduler {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

int KeptOf(RefusalLimit& limit, std::string_view user, int calls, absl::Time now) {
  int kept = 0;
  for (int i = 0; i < calls; ++i) kept += limit.Count(user, now) ? 1 : 0;
  return kept;
}

TEST(RefusalLimit, KeepsTheFirstOfEachUserAndCountsTheOthers) {
  RefusalLimit limit;
  EXPECT_EQ(KeptOf(limit, "eve", 1'000, kStart), RefusalLimit::kEach);
  EXPECT_EQ(KeptOf(limit, "bob", 3, kStart + absl::Minutes(1)), 3);
  EXPECT_THAT(limit.TakeEnded(kStart + absl::Minutes(9)), IsEmpty());
  const auto rests = limit.TakeEnded(kStart + RefusalLimit::kWindow);
  ASSERT_THAT(rests, SizeIs(1));
  EXPECT_EQ(rests[0].user, "eve");
  EXPECT_EQ(rests[0].since, kStart);
  EXPECT_EQ(rests[0].refusals, 1'000 - RefusalLimit::kEach);
  // Another window begins with the next refusal; bob, who had few, has nothing left.
  EXPECT_TRUE(limit.Count("eve", kStart + absl::Minutes(12)));
  EXPECT_THAT(limit.TakeEnded(kStart + absl::Minutes(12)), IsEmpty());
}

TEST(RefusalLimit, NamesThatAreMadeUpShareOneWindow) {
  RefusalLimit limit;
  int kept = 0;
  for (int i = 0; i < 10'000; ++i) {
    kept += KeptOf(limit, fmt::format("user{}", i), 1, kStart);
  }
  EXPECT_EQ(kept, static_cast<int>(RefusalLimit::kMostUsers) + RefusalLimit::kEach);
  const auto rests = limit.TakeEnded(kStart + RefusalLimit::kWindow);
  ASSERT_THAT(rests, SizeIs(1));
  EXPECT_EQ(rests[0].user, "");
  EXPECT_EQ(rests[0].refusals + kept, 10'000);
}

TEST(RefusalLimit, AClockThatIsSetBackKeepsNobodyOut) {
  RefusalLimit limit;
  EXPECT_EQ(KeptOf(limit, "eve", 50, kStart), RefusalLimit::kEach);
  const absl::Time back = kStart - absl::Hours(24);
  EXPECT_THAT(limit.TakeEnded(back), SizeIs(1));
  EXPECT_TRUE(limit.Count("eve", back));
}

}  // namespace
}  // namespace kiln::scheduler
