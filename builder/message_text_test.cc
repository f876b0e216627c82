#include "builder/message_text.h"

#include <gtest/gtest.h>

namespace kiln::builder {
namespace {

TEST(CutMessageTest, ShortTextStays) {
  EXPECT_EQ(CutMessage(""), "");
  EXPECT_EQ(CutMessage("größer"), "größer");
  EXPECT_EQ(CutMessage(std::string(512, 'x')), std::string(512, 'x'));
}

TEST(CutMessageTest, LongTextKeepsBothEnds) {
  const std::string cut =
      CutMessage(std::string(300, 'a') + std::string(9000, 'b') + std::string(300, 'c'));
  EXPECT_EQ(cut, std::string(251, 'a') + " ... " + std::string(256, 'c'));
}

TEST(CutMessageTest, CharactersAreNotCut) {
  // Each character has two bytes; the odd letter in front puts characters across both cuts.
  for (const char* front : {"", "x"}) {
    std::string text = front;
    for (int i = 0; i < 500; ++i) text += "ü";
    const std::string cut = CutMessage(text);
    EXPECT_LE(cut.size(), 512);
    EXPECT_GE(cut.size(), 508);
    EXPECT_EQ(cut.find('?'), std::string::npos);
    EXPECT_EQ(CutMessage(cut), cut);
  }
}

TEST(CutMessageTest, OtherBytesAreReplaced) { EXPECT_EQ(CutMessage("a\xff\x80z"), "a??z"); }

}  // namespace
}  // namespace kiln::builder
