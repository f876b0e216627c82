#include "search/space/matrix_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/numbers/integers.h"

namespace kiln::search {
namespace {

TEST(MatrixRows, OfSeveralAxesMayFollowEachOther) {
  struct Case {
    std::vector<RowsOfAxis> axes;
    bool follow;
  };
  const Case cases[] = {
      {{{1, 4, 16}, {2, 8, 1}}, true},             // y, x: 4 lines of 16
      {{{3, 4, 16}, {2, 8, 1}}, true},             // three times 64 rows
      {{{1, 8, 16}, {2, 8, 1}}, true},             // two groups of warps
      {{{1, 12, 16}, {2, 8, 1}}, true},            // three
      {{{1, 4, 16}, {2, 2, 4}, {1, 4, 1}}, true},  // n, y, x: 4 x 4 points of 4 images
      {{{1, 4, 16}, {2, 1, 8}, {1, 8, 1}}, true},  // two lines of 8 of 4 images
      {{{1, 4, 18}, {2, 8, 1}}, false},            // a window between the lines
      {{{2, 32, 1}}, false},                       // half of an axis apart
      {{{2, 4, 8}, {1, 8, 1}}, false},             // likewise, of lines
      {{{1, 4, 32}, {4, 8, 1}}, false},            // other rows between the warps
      {{{1, 4, 32}, {2, 16, 1}}, false},           // warps before the second row
      {{{1, 2, 16}, {2, 8, 1}}, false},            // two warps
      {{{1, 4, 8}, {1, 8, 1}}, false},             // one row of a thread
  };
  for (size_t i = 0; i < std::size(cases); ++i)
    EXPECT_EQ(FollowInMemory(cases[i].axes), cases[i].follow) << "case " << i;
}

// Every draw is such a tile, and of all extents there are some.
TEST(MatrixRows, DrawnOnesDo) {
  Rng rng(5);
  for (const std::vector<int64_t>& extents : {std::vector<int64_t>{1, 14, 14},
                                              {1, 56, 56},
                                              {16, 7, 7},
                                              {64, 28, 28},
                                              {12, 17},
                                              {4, 9, 2}}) {
    for (const int64_t groups : {1, 2, 3}) {
      for (const int64_t rows : {2, 4}) {
        size_t found = 0;
        for (int draw = 0; draw < 300; ++draw) {
          const auto tile = RandomRowsInOrder(extents, groups, rows, rng);
          if (tile.empty()) continue;
          ++found;
          std::vector<RowsOfAxis> axes;
          int64_t apart = 1, threads = 1, vthreads = 1;
          for (size_t i = tile.size(); i-- > 0;) {
            axes.insert(axes.begin(), {tile[i][0], tile[i][1], apart});
            apart *= tile[i][0] * tile[i][1];
            threads *= tile[i][1];
            vthreads *= tile[i][0];
          }
          EXPECT_TRUE(FollowInMemory(axes));
          EXPECT_EQ(threads, 32 * groups);
          EXPECT_EQ(vthreads, rows);
        }
        const int64_t all =
            std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<int64_t>());
        if (all >= 128 * groups * rows) {
          EXPECT_GT(found, 0u) << extents[0] << " " << groups << " " << rows;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kiln::search
