#include "base/text/closest_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<std::string> kNames = {"trials", "target", "tasks", "task-strategy", "db"};

TEST(ClosestNamesTest, NearestFirst) {
  EXPECT_THAT(ClosestNames("trails", kNames), ElementsAre("trials"));
  EXPECT_THAT(ClosestNames("task", kNames), ElementsAre("tasks", "task-strategy"));
  EXPECT_THAT(ClosestNames("xyzzy", kNames), IsEmpty());
  EXPECT_THAT(ClosestNames(std::string(1000, 'a'), kNames), IsEmpty());
}

TEST(ClosestNamesTest, AsAQuestion) {
  EXPECT_EQ(DidYouMean("trails", kNames), ", did you mean trials?");
  EXPECT_EQ(DidYouMean("task", kNames), ", did you mean tasks or task-strategy?");
  EXPECT_EQ(DidYouMean("xyzzy", kNames), "");
}

}  // namespace
}  // namespace kiln
