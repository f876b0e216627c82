#include "search/choice/workload_distance.h"

#include <gtest/gtest.h>

namespace kiln::search {
namespace {

TEST(WorkloadDistanceTest, IsTheProductOfTheQuotientsOfExtents) {
  constexpr char kFound[] = R"(["8c53", [1, 7, 7, 512], [1, 1, 1, 512]])";
  EXPECT_EQ(WorkloadDistance(kFound, kFound), 1);
  EXPECT_EQ(WorkloadDistance(R"(["8c53", [4, 14, 7, 512], [1, 1, 1, 512]])", kFound), 8);
  EXPECT_EQ(WorkloadDistance(R"(["8c53", 4, 7, 7, 512, 1, 1, 1, 512])", kFound), 4)
      << "older keys have no lists inside";
}

TEST(WorkloadDistanceTest, PackedInputsAreNoDistance) {
  EXPECT_EQ(WorkloadDistance(R"(["8c53", [2, 7], "packed"])", R"(["8c53", [1, 7]])"), 2);
  EXPECT_EQ(WorkloadDistance(R"(["8c53", [2, 7]])", R"(["8c53", [1, 7], "packed"])"), 2);
}

TEST(WorkloadDistanceTest, ThereIsNone) {
  constexpr char kFound[] = R"(["8c53", [4, 7, 0, "x"]])";
  for (const char* wanted :
       {R"(["8c54", [4, 7, 0, "x"]])", R"(["8c53", [4, 7, 0]])", R"(["8c53", [6, 7, 0, "x"]])",
        R"(["8c53", [2, 7, 0, "x"]])", R"(["8c53", [4, 7, 1, "x"]])", R"(["8c53", [4, 7, 0, "y"]])",
        R"(["8c53", [4, 7.5, 0, "x"]])", "", "[", "{}"}) {
    EXPECT_EQ(WorkloadDistance(wanted, kFound), std::nullopt) << wanted;
  }
}

TEST(WorkloadDistanceTest, HashOfAKey) {
  EXPECT_EQ(WorkloadHash(R"(["8c53", [1, 7]])"), "8c53");
  EXPECT_EQ(WorkloadHash("[]"), "");
}

}  // namespace
}  // namespace kiln::search
