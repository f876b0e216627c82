#include "base/hash/mac.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

// Test case 2 of RFC 4231.
TEST(MacTest, KnownAnswer) {
  EXPECT_EQ(MacHex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(MacTest, KeyAndTextMatter) {
  EXPECT_EQ(MacHex("", "a"), MacHex("", "a"));
  EXPECT_NE(MacHex("k", "a"), MacHex("k", "b"));
  EXPECT_NE(MacHex("k", "a"), MacHex("l", "a"));
}

}  // namespace
}  // namespace kiln
