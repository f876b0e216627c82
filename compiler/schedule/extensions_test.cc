#include "compiler/schedule/extensions.h"

#include <gtest/gtest.h>

#include "base/status_testing.h"

namespace kiln::schedule {
namespace {

TEST(Extensions, AreTheStepsOfOurOwn) {
  for (const char* step :
       {R"(["BF", 4, 2])", R"(["BF", 4, 3, 1])", R"(["AN", 2, 0, 12])",
        R"(["CHR", 0, "transposed", [2], [1, 0]])", R"(["MA", 3, 0, 3])", R"(["MV", 3, 2])"}) {
    EXPECT_TRUE(*HasExtension(std::string("[[\"CI\", 3], ") + step + "]")) << step;
  }
  EXPECT_FALSE(*HasExtension(
      R"([["SP", 2, 0, 8, [2], 1], ["FSP", 3, 0, 0, 1], ["FFSP", 3, 0, [0], 1, 1], ["FU", 2, [0, 1]],
          ["RE", 2, [1, 0]], ["AN", 2, 0, 11], ["PR", 2, 0, "auto_unroll_max_step$64"],
          ["PR", 2, 0, "debug_skip_region"], ["SA", 1, 0, 4, 1], ["CA", 1, 2, 0], ["CI", 1],
          ["CR", 1], ["CHR", 0, "shared", [2]], ["CHW", 2, "local"], ["RF", 2, 1, 0]])"));
  EXPECT_FALSE(*HasExtension("[]"));
  EXPECT_FALSE(HasExtension(R"([["XX", 1]])").ok());
}

}  // namespace
}  // namespace kiln::schedule
