#include "base/text/counted.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(Counted, OneIsSingularAndAllOthersAreNot) {
  EXPECT_EQ(Counted(1, "kernel"), "1 kernel");
  EXPECT_EQ(Counted(0, "kernel"), "0 kernels");
  EXPECT_EQ(Counted(3'700, "record"), "3,700 records");
  EXPECT_EQ(Counted(1, "search", "searches"), "1 search");
  EXPECT_EQ(Counted(2, "search", "searches"), "2 searches");
  EXPECT_EQ(IsOrAre(1), "is");
  EXPECT_EQ(IsOrAre(0), "are");
}

}  // namespace
}  // namespace kiln
