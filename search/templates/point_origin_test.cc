#include "search/templates/point_origin.h"

#include <gtest/gtest.h>

namespace kiln::search {
namespace {

TEST(PointOrigin, PrintsAndParsesBack) {
  for (const PointOrigin& origin :
       {PointOrigin{"template", "dense", 0}, PointOrigin{"template", "mine", int64_t{1} << 60},
        PointOrigin{"kernel", "f<float, config 16>", 12},
        PointOrigin{"template", "dense", 7, "tile_x=[-1,8] unroll=True"},
        PointOrigin{"template", "dense", 7, "words=a, config b"}}) {
    EXPECT_EQ(ParsePointOrigin(PrintPointOrigin(origin)), origin);
  }
  EXPECT_EQ(PrintPointOrigin({"template", "dense", 7}), "template dense, config 7");
  EXPECT_EQ(PrintPointOrigin({"template", "dense", 7, "x=1"}), "template dense, config 7: x=1");
}

TEST(PointOrigin, OthersAreNone) {
  for (const char* text :
       {"", "template", "template dense", "template , config 3", "template dense, config ",
        "template dense, config x", "template dense, config 3 more", "template dense, config 3: ",
        "template dense, config -3", "template dense, config 99999999999999999999",
        "sketch 1, config 3", "sketch 0, tile sizes of 'C', 2 changes from trial 17"}) {
    EXPECT_EQ(ParsePointOrigin(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace kiln::search
