#include "compiler/dag/argument_bytes.h"

#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/text.h"

namespace kiln::dag {
namespace {

TEST(ArgumentBytesTest, InputsAndOutputsCountStagesBetweenDoNot) {
  ASSERT_OK_AND_ASSIGN(const auto dag, ParseDag(R"(
input A: float16[4, 8]
input x: float32[8]
B[i: 4, k: 8] = float32(A[i, k]) * x[k]
C[i: 4] = sum(k: 8) B[i, k]
D[i: 4] = int8(C[i])
E[i: 4] = C[i] + 1.0
)"));
  EXPECT_EQ(ArgumentBytes(*dag), 4 * 8 * 2 + 8 * 4 + 4 * 1 + 4 * 4);
}

}  // namespace
}  // namespace kiln::dag
