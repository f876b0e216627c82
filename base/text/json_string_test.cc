#include "base/text/json_string.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

std::string Json(std::string_view text) {
  std::string out;
  AppendJsonString(text, out);
  return out;
}

TEST(JsonStringTest, PlainTextStaysAsItIs) {
  EXPECT_EQ(Json(""), R"("")");
  EXPECT_EQ(Json("conv2d 1,7 / {x}"), R"("conv2d 1,7 / {x}")");
  EXPECT_EQ(Json("größer"), R"("größer")");
}

TEST(JsonStringTest, QuotesAndControlCharactersAreEscaped) {
  EXPECT_EQ(Json(R"(a "b" \c)"), R"("a \"b\" \\c")");
  EXPECT_EQ(Json("a\nb\tc\x1b"), R"("a\nb\u0009c\u001b")");
}

TEST(JsonStringTest, WhatATerminalShouldNotSeeIsEscaped) {
  EXPECT_EQ(Json("a\xff"), R"("a?")");
  EXPECT_EQ(Json("\u202e\x7f"), R"("\u202e\u007f")");
}

}  // namespace
}  // namespace kiln
