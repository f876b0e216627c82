#include "rpc/asked_by.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

const absl::Time kTime =
    absl::FromCivil(absl::CivilSecond(2026, 11, 29, 14, 2, 11), absl::UTCTimeZone());

TEST(AskedByTest, PrintsWhatIsSet) {
  EXPECT_EQ(PrintAskedBy({}), "");
  EXPECT_EQ(PrintAskedBy({.name = "ada"}), "ada");
  EXPECT_EQ(PrintAskedBy({.name = "ada", .at = kTime}), "ada at 2026-11-29T14:02:11Z");
  EXPECT_EQ(PrintAskedBy({.name = "ada", .at = kTime, .why = "a new driver: 570"}),
            "ada at 2026-11-29T14:02:11Z: a new driver: 570");
}

TEST(AskedByTest, ReadsWhatItPrints) {
  for (const AskedBy& asked :
       {AskedBy{}, AskedBy{.name = "ada"}, AskedBy{.name = "ada", .why = "x at y: z"},
        AskedBy{.name = "an operator", .at = kTime},
        AskedBy{.name = "look at me", .at = kTime, .why = "why: not"}}) {
    EXPECT_EQ(ParseAskedBy(PrintAskedBy(asked)), asked) << PrintAskedBy(asked);
  }
}

TEST(AskedByTest, AnyTextIsAName) {
  EXPECT_EQ(ParseAskedBy("ada at noon"), AskedBy{.name = "ada at noon"});
  EXPECT_EQ(ParseAskedBy(" at 2026-11-29T14:02:11Z"), AskedBy{.at = kTime});
  EXPECT_EQ(ParseAskedBy("ada: "), AskedBy{.name = "ada"});
  EXPECT_EQ(ParseAskedBy("x at infinite-future"), AskedBy{.name = "x at infinite-future"});
  EXPECT_EQ(ParseAskedBy("ada:x"), AskedBy{.name = "ada:x"});
}

// The field of the call and of the announcement takes 256 bytes.
TEST(AskedByTest, TheLongestTextFitsItsField) {
  const AskedBy longest = {.name = std::string(kMostAskerBytes, 'a'),
                           .at = kTime,
                           .why = std::string(kMostWhyBytes, 'w')};
  EXPECT_LE(PrintAskedBy(longest).size(), 256u);
}

}  // namespace
}  // namespace kiln
