#include "base/text/utf8.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(ValidUtf8Test, OtherBytesAreReplaced) {
  EXPECT_EQ(ValidUtf8(""), "");
  EXPECT_EQ(ValidUtf8("a\xff\x80z"), "a??z");
  EXPECT_EQ(ValidUtf8("\xc3"), "?");
  // Overlong characters.
  EXPECT_EQ(ValidUtf8("\xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf"), "?? ??? ????");
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

// Such characters make a name look like another one: "abc" turned round, or nothing at all.
TEST(PrintableTest, CharactersThatCannotBeSeenStandAsTheirNumbers) {
  EXPECT_EQ(Printable("a\u202Ecba\u2066z\u200E"), "a\\u{202E}cba\\u{2066}z\\u{200E}");
  EXPECT_EQ(Printable("\u061C\u00AD\u200B\uFEFF\U000E0041"),
            "\\u{061C}\\u{00AD}\\u{200B}\\u{FEFF}\\u{E0041}");
  EXPECT_EQ(Printable("a\u2028b"), "a\\u{2028}b") << "a line break of its own";
  for (const uint32_t number : {0x202Au, 0x202Bu, 0x202Cu, 0x202Du, 0x202Eu, 0x2066u, 0x2067u,
                                0x2068u, 0x2069u, 0x200Eu, 0x200Fu}) {
    const std::string text = {static_cast<char>(0xE0 | number >> 12),
                              static_cast<char>(0x80 | (number >> 6 & 0x3F)),
                              static_cast<char>(0x80 | (number & 0x3F))};
    EXPECT_NE(Printable(text), text) << number;
    EXPECT_NE(OneLine(text), text) << number;
  }
  EXPECT_EQ(Printable("naïve Δx ≤ 3 µs 東京 😀"), "naïve Δx ≤ 3 µs 東京 😀");
}

TEST(PrintableJsonTest, KeepsItsMeaning) {
  EXPECT_EQ(PrintableJson("{\"a\": \"x\u202Ey\u009B\x7F é\"}\n"),
            "{\"a\": \"x\\u202ey\\u009b\\u007f é\"}\n");
  EXPECT_EQ(PrintableJson("\"\U000E0041\""), "\"\\udb40\\udc41\"");
}

TEST(OneLineTest, ControlCharactersAreSpaces) {
  EXPECT_EQ(OneLine("\n two\r\nlines\t\x1b[31m\xff\x7f "), "two  lines  [31m?");
  EXPECT_EQ(OneLine("\n\n"), "");
}

}  // namespace
}  // namespace kiln
