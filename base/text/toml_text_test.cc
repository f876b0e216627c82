#include "base/text/toml_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

using testing::HasSubstr;

TEST(TomlTextTest, ParsesATable) {
  toml::table table;
  ASSERT_FALSE(ParseToml("a = \"\u00e9\" # \u00e9\n[b]\nc = 2\n", table).has_value());
  EXPECT_EQ(table["a"].value<std::string>(), "\u00e9");
  EXPECT_EQ(table["b"]["c"].value<int64_t>(), 2);
}

TEST(TomlTextTest, EntriesAreInTheOrderOfTheText) {
  toml::table table;
  ASSERT_FALSE(ParseToml("z = 1\na = 2\n", table).has_value());
  const auto entries = InOrder(table);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].first->str(), "z");
  EXPECT_EQ(entries[1].first->str(), "a");
}

TEST(TomlTextTest, AMistakeHasItsLineAndLeavesTheTable) {
  toml::table table;
  ASSERT_FALSE(ParseToml("a = 1", table).has_value());
  const auto mistake = ParseToml("b = 2\nb = 3\n", table);
  ASSERT_TRUE(mistake.has_value());
  EXPECT_EQ(mistake->where.begin.line, 2u);
  EXPECT_TRUE(table.contains("a"));
}

TEST(TomlTextTest, LettersThatTheLibraryTakesForBlanksAreRefused) {
  toml::table table;
  const auto mistake = ParseToml("a = 1\n\u00e9 = 2\n", table);
  ASSERT_TRUE(mistake.has_value());
  EXPECT_EQ(mistake->where.begin.line, 2u);
  EXPECT_THAT(mistake->description, HasSubstr("not ASCII"));
}

}  // namespace
}  // namespace kiln
