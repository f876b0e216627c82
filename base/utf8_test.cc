#include "base/utf8.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(ValidUtf8Test, OtherBytesAreReplaced) {
  EXPECT_EQ(ValidUtf8(""), "");
  EXPECT_EQ(ValidUtf8("a\xff\x80z"), "a??z");
  EXPECT_EQ(ValidUtf8("\xc3"), "?");
  EXPECT_EQ(ValidUtf8("\xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf"), "?? ??? ????");  // spelled long
  EXPECT_EQ(ValidUtf8("\xed\xa0\x80 \xf4\x90\x80\x80 \xf5"), "??? ???? ?");
  EXPECT_EQ(ValidUtf8("€ 😀 \xf4\x8f\xbf\xbf"), "€ 😀 \xf4\x8f\xbf\xbf");
}

TEST(IsUtf8Test, TellsThemApart) {
  using namespace std::string_view_literals;
  for (const auto text : {""sv, "\0"sv, "a"sv, "\xc2\x80"sv, "\xed\x9f\xbf"sv, "€ 😀"sv}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  for (const auto text : {"\xff"sv, "a\x80"sv, "\xc0\xaf"sv, "\xe2\x82"sv, "\xed\xa0\x80"sv}) {
    EXPECT_FALSE(IsUtf8(text));
  }
  for (size_t before = 0; before < 20; ++before) {
    for (const size_t behind : {0, 1, 7, 8, 9}) {
      const std::string head(before, 'a'), tail(behind, 'z');
      EXPECT_TRUE(IsUtf8(head + "€" + tail));
      EXPECT_FALSE(IsUtf8(head + "\x80" + tail)) << before << " before, " << behind << " behind";
    }
  }
}

TEST(PrintableTest, ControlCharactersButLineFeedsAreSpaces) {
  EXPECT_EQ(Printable("a\n\tb\x1b[31m\x7f\xff"), "a\n b [31m ?");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "2J\xc2\xa0\xc3\xa9"),
            " 2J\xc2\xa0\xc3\xa9")
      << "U+009B begins commands, too";
}

TEST(OneLineTest, ControlCharactersAreSpaces) {
  EXPECT_EQ(OneLine("\n two\r\nlines\t\x1b[31m\xff\x7f "), "two  lines  [31m?");
  EXPECT_EQ(OneLine("\n\n"), "");
}

}  // namespace
}  // namespace kiln
