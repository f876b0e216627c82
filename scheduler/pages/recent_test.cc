#include "scheduler/pages/recent.h"

#include <gtest/gtest.h>

namespace kiln::scheduler {
namespace {

TEST(RecentTest, KeepsWhatWasAskedForLast) {
  Recent<int> recent(2);
  *recent.Get("a") = 1;
  *recent.Get("b") = 2;
  EXPECT_EQ(*recent.Get("a"), 1);
  *recent.Get("c") = 3;
  EXPECT_EQ(recent.size(), 2u);
  EXPECT_EQ(*recent.Get("a"), 1);
  // "b" was the oldest, and begins anew.
  EXPECT_EQ(*recent.Get("b"), 0);
}

TEST(RecentTest, AValueThatIsHeldOutlivesItsPlace) {
  Recent<int> recent(1);
  const auto held = recent.Get("a");
  *held = 7;
  recent.Get("b");
  EXPECT_EQ(*held, 7);
  EXPECT_EQ(*recent.Get("a"), 0);
}

}  // namespace
}  // namespace kiln::scheduler
