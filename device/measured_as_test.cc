#include "device/measured_as.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/status_testing.h"

namespace kiln::device {
namespace {

using testing::HasSubstr;

TEST(MeasuredAs, EachWayHasATextOfItsOwnThatIsReadBack) {
  std::set<std::string> texts;
  for (const auto launches :
       {MeasuredAs::Launches::kCall, MeasuredAs::Launches::kGraph, MeasuredAs::Launches::kStream}) {
    for (const auto caches : {MeasuredAs::Caches::kWarm, MeasuredAs::Caches::kCold}) {
      for (const auto clocks : {MeasuredAs::Clocks::kFree, MeasuredAs::Clocks::kFixed}) {
        const MeasuredAs way = {launches, caches, clocks};
        const std::string text = PrintMeasuredAs(way);
        texts.insert(text);
        ASSERT_OK_AND_ASSIGN(const auto parsed, ParseMeasuredAs(text));
        EXPECT_EQ(parsed, way) << text;
      }
    }
  }
  EXPECT_EQ(texts.size(), 12u);
  EXPECT_TRUE(texts.contains("graph/cold/fixed"));
}

TEST(MeasuredAs, AnEmptyTextIsNotKnownAndOthersAreRefused) {
  ASSERT_OK_AND_ASSIGN(const auto none, ParseMeasuredAs(""));
  EXPECT_FALSE(none.has_value());
  for (const char* const text : {"graph", "graph/warm", "graph/warm/free/", "warm/graph/free", "//",
                                 "graph/warm/fre", "Graph/warm/free"}) {
    EXPECT_THAT(ParseMeasuredAs(text),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("such as graph/warm/free")))
        << text;
  }
}

TEST(MeasuredAs, ADeploymentSelectsItsOwnWays) {
  EXPECT_TRUE(IsAsDeployed("graph/warm/free", "graph"));
  EXPECT_FALSE(IsAsDeployed("graph/warm/free", "stream"));
  EXPECT_FALSE(IsAsDeployed("", "graph"));
  EXPECT_TRUE(IsAsDeployed("", ""));
  EXPECT_TRUE(IsAsDeployed("call/cold/free", ""));
  EXPECT_OK(CheckDeployment("graph"));
  EXPECT_THAT(CheckDeployment("gra"), StatusIs(StatusCode::kInvalidArgument, HasSubstr("'gra'")));
}

}  // namespace
}  // namespace kiln::device
