#include "client/view/short_loops.h"

#include <gtest/gtest.h>

namespace kiln::client {
namespace {

constexpr char kProduct[] =
    "Placeholder: p0, p1\n"
    "C auto_unroll: 512\n"
    "parallel i.0@j.0@ (0,16)\n"
    "  for k.0 (0,8)\n"
    "    for i.1 (0,4)\n"
    "      vectorize j.1 (0,64)\n"
    "        C.local = ...\n"
    "  for i.1 (0,4)\n"
    "    C = ...\n";

TEST(ShortLoops, LoopsThatHoldOneLoopShareALine) {
  EXPECT_EQ(ShortLoops(kProduct, 80, 12),
            "C auto_unroll: 512\n"
            "parallel i.0@j.0@ (16)\n"
            "  k.0 (8), i.1 (4), vectorize j.1 (64): C.local\n"
            "  i.1 (4): C\n");
}

TEST(ShortLoops, NothingIsLongerOrWiderThanAsked) {
  EXPECT_EQ(ShortLoops(kProduct, 20, 3),
            "C auto_unroll: 512\n"
            "parallel i.0@j.0@...\n"
            "... and 2 more lines\n");
  EXPECT_EQ(ShortLoops("for i (0,16)\n  for j (0,16)\n    for k (0,4)\n      C = ...\n", 20, 3),
            "i (16), j (16)...: C\n");
  EXPECT_EQ(ShortLoops("", 20, 3), "");
  EXPECT_EQ(ShortLoops("C = ...\n", 20, 3), "C\n");
}

}  // namespace
}  // namespace kiln::client
