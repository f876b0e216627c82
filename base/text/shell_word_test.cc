#include "base/text/shell_word.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(ShellWordTest, ShellWordsAreQuotedWhereNeeded) {
  EXPECT_EQ(ShellWord("bazel-bin/client/cli/kiln"), "bazel-bin/client/cli/kiln");
  EXPECT_EQ(ShellWord("my db"), "'my db'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord("$(x)"), "'$(x)'");
  EXPECT_EQ(ShellWord(""), "''");
}

TEST(ShellWordTest, FirstLines) {
  EXPECT_EQ(FirstLine("one\ntwo"), "one");
  EXPECT_EQ(FirstLine("one"), "one");
  EXPECT_EQ(FirstLine(""), "");
}

}  // namespace
}  // namespace kiln
