#include "compiler/dag/least_operations.h"

#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/text.h"

namespace kiln::dag {
namespace {

double OperationsOf(const std::string& text) {
  const auto dag = ParseDag(text);
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return LeastOperations(**dag);
}

constexpr char kProduct[] = R"(
input A: float32[16, 8]
input B: float32[8, 4]
P[i: 16, j: 4] = sum(k: 8) A[i, k] * B[k, j]
)";
constexpr double kProductFlops = 2.0 * 16 * 8 * 4;

TEST(LeastOperationsTest, CountsWhatTheOutputsNeedWhole) {
  EXPECT_EQ(OperationsOf(kProduct), kProductFlops);
  EXPECT_EQ(OperationsOf(std::string(kProduct) + "T[j: 4, i: 16] = P[i, j] + 1.0\n"),
            kProductFlops + 64);
  EXPECT_EQ(OperationsOf(std::string(kProduct) + "S[j: 4] = sum(i: 16) P[i, j]\n"),
            kProductFlops + 64);
}

TEST(LeastOperationsTest, LeavesOutWhatMayNotBeNeeded) {
  // A slice, a diagonal, a row, a shift, a choice.
  EXPECT_EQ(OperationsOf(std::string(kProduct) + "T[i: 8, j: 4] = P[i, j] + 1.0\n"), 32);
  EXPECT_EQ(OperationsOf(std::string(kProduct) + "T[i: 4] = P[i, i] + 1.0\n"), 4);
  EXPECT_EQ(OperationsOf(std::string(kProduct) + "T[j: 4] = P[3, j] + 1.0\n"), 4);
  EXPECT_EQ(OperationsOf(std::string(kProduct) + "T[i: 15, j: 4] = P[i + 1, j] + 1.0\n"), 60);
  EXPECT_LT(OperationsOf(std::string(kProduct) + "T[i: 16, j: 4] = select(i < 2, P[i, j], 0.0)\n"),
            kProductFlops);
}

}  // namespace
}  // namespace kiln::dag
