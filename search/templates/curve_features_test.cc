#include "search/templates/curve_features.h"

#include <cmath>
#include <vector>

#include "base/status_testing.h"
#include "compiler/ir/program_text.h"

namespace kiln::search {
namespace {

using Numbers = std::vector<float>;

constexpr int kCurve = 2 * 20;       // numbers of one curve
constexpr int kTensor = 4 * kCurve;  // numbers of one tensor

Numbers FeaturesOf(std::string_view text) {
  const StatusOr<ir::Program> program = ir::ParseProgram(text);
  KILN_CHECK(program.ok(), "{}", Message(program.status()));
  return CurveFeatures(*program);
}

Numbers CurveOf(const Numbers& row, int tensor, int curve) {
  const auto start = row.begin() + tensor * kTensor + curve * kCurve;
  return {start, start + kCurve};
}

struct Step {
  int from;       // a sample
  double begins;  // begin of the step: at `from` or a little before
  double value;
};

// Returns the samples of a step function.
Numbers Steps(std::vector<Step> steps) {
  Numbers numbers;
  for (int at = 0; at < 20; ++at) {
    while (steps.size() > 1 && steps[1].from <= at) steps.erase(steps.begin());
    numbers.push_back(static_cast<float>(steps[0].value));
    numbers.push_back(static_cast<float>(at - steps[0].begins));
  }
  return numbers;
}

// autotvm's own test has the count and reuse of this matrix product (TVM v0.8,
// tests/python/unittest/test_autotvm_feature.py, test_iter_feature_gemm). For y, x and k, inwards:
//   A_0  count 16384, 128, 128    reuse 128, 128, 1
//   B_0  count 16384, 16384, 128  reuse 128, 1, 1
//   C    count 16384, 128, 1      reuse 128, 128, 128
// and topdown is 128, 16384, 2097152 for each. As logarithms, sorted, with the first zero:
//   topdown 0 7 14 21
//   A_0     count 0 7 7 14    reuse 0 0 7 7
//   B_0     count 0 7 14 14   reuse 0 0 0 7
//   C       count 0 0 7 14    reuse 0 7 7 7
TEST(CurveFeatures, OfTheProductOfAutotvmsTest) {
  const Numbers row = FeaturesOf(R"(program(
  A: input float32[128, 128],
  B: input float32[128, 128],
  C: output float32[128, 128],
) {
  stage C
  kernel C {
    for y in 0..128 {
      for x in 0..128 {
        C[y, x] = 0.0 @ C
        for k in 0..128 {
          C[y, x] = C[y, x] + A[y, k]*B[k, x] @ C
        }
      }
    }
  }
}
)");
  ASSERT_EQ(row.size(), size_t{3 * kTensor});  // the first C is not in the deepest loop
  EXPECT_EQ(CurveOf(row, 0, 0), Steps({{0, 0, 0}, {7, 7, 7}, {14, 14, 7}}));  // reuse over count
  EXPECT_EQ(CurveOf(row, 0, 1), Steps({{0, 0, 7}, {7, 7, 14}}));              // count over reuse
  EXPECT_EQ(CurveOf(row, 0, 2),
            Steps({{0, 0, 0}, {7, 7, 14}, {14, 14, 21}}));                    // topdown over count
  EXPECT_EQ(CurveOf(row, 0, 3), Steps({{0, 0, 0}, {7, 7, 7}, {14, 14, 7}}));  // count over topdown
  EXPECT_EQ(CurveOf(row, 1, 0), Steps({{0, 0, 0}, {7, 7, 0}, {14, 14, 7}}));
  EXPECT_EQ(CurveOf(row, 1, 1), Steps({{0, 0, 14}, {7, 7, 14}}));
  EXPECT_EQ(CurveOf(row, 1, 2), Steps({{0, 0, 0}, {7, 7, 7}, {14, 14, 21}}));
  EXPECT_EQ(CurveOf(row, 1, 3), Steps({{0, 0, 0}, {7, 7, 7}, {14, 14, 14}}));
  EXPECT_EQ(CurveOf(row, 2, 0), Steps({{0, 0, 7}, {7, 7, 7}, {14, 14, 7}}));
  EXPECT_EQ(CurveOf(row, 2, 1), Steps({{0, 0, 0}, {7, 7, 14}}));
  EXPECT_EQ(CurveOf(row, 2, 2), Steps({{0, 0, 7}, {7, 7, 14}, {14, 14, 21}}));
  EXPECT_EQ(CurveOf(row, 2, 3), Steps({{0, 0, 0}, {7, 7, 0}, {14, 14, 7}}));
}

// The first loop is split into 2 and 4. For yo, yi, x and k, inwards, with extents 2, 4, 6 and 16,
// the products down to them are 2, 8, 48 and 768:
//   A_0  y*16 + k  count 128, 64, 16, 16  reuse 6, 6, 6, 1
//   B_0  k*6 + x   count 96, 96, 96, 16   reuse 8, 4, 1, 1
//   C    y*6 + x   count 48, 24, 6, 1     reuse 16 each
TEST(CurveFeatures, OfAProductWithASplitLoop) {
  const Numbers row = FeaturesOf(R"(program(
  A: input float32[8, 16],
  B: input float32[16, 6],
  C: output float32[8, 6],
) {
  stage C
  kernel C {
    for yo in 0..2 {
      for yi in 0..4 {
        for x in 0..6 {
          C[yo*4 + yi, x] = 0.0 @ C
          for k in 0..16 {
            C[yo*4 + yi, x] = C[yo*4 + yi, x] + A[yo*4 + yi, k]*B[k, x] @ C
          }
        }
      }
    }
  }
}
)");
  ASSERT_EQ(row.size(), size_t{3 * kTensor});
  const double log_6 = std::log2(6), log_24 = std::log2(24), log_48 = std::log2(48),
               log_96 = std::log2(96), log_768 = std::log2(768);
  // A: count 0 4 4 6 7, reuse 0 0 log_6 log_6 log_6, topdown 0 1 3 log_48 log_768.
  EXPECT_EQ(CurveOf(row, 0, 0), Steps({{0, 0, 0}, {4, 4, log_6}, {6, 6, log_6}, {7, 7, log_6}}));
  EXPECT_EQ(CurveOf(row, 0, 1), Steps({{0, 0, 4}, {3, log_6, 7}}));
  EXPECT_EQ(CurveOf(row, 0, 2), Steps({{0, 0, 0}, {4, 4, 3}, {6, 6, log_48}, {7, 7, log_768}}));
  EXPECT_EQ(CurveOf(row, 0, 3),
            Steps({{0, 0, 0}, {1, 1, 4}, {3, 3, 4}, {6, log_48, 6}, {10, log_768, 7}}));
  // B: count 0 4 log_96 log_96 log_96, reuse 0 0 0 2 3.
  EXPECT_EQ(CurveOf(row, 1, 0), Steps({{0, 0, 0}, {4, 4, 0}, {7, log_96, 3}}));
  EXPECT_EQ(CurveOf(row, 1, 1), Steps({{0, 0, log_96}, {2, 2, log_96}, {3, 3, log_96}}));
  EXPECT_EQ(CurveOf(row, 1, 2), Steps({{0, 0, 0}, {4, 4, 1}, {7, log_96, log_768}}));
  // C: count 0 0 log_6 log_24 log_48, reuse 0 4 4 4 4.
  EXPECT_EQ(CurveOf(row, 2, 0), Steps({{0, 0, 4}, {3, log_6, 4}, {5, log_24, 4}, {6, log_48, 4}}));
  EXPECT_EQ(CurveOf(row, 2, 1), Steps({{0, 0, 0}, {4, 4, log_48}}));
  EXPECT_EQ(
      CurveOf(row, 2, 3),
      Steps({{0, 0, 0}, {1, 1, 0}, {3, 3, log_6}, {6, log_48, log_24}, {10, log_768, log_48}}));
}

// The copy of a tensor that is used last stands for the tensor.
TEST(CurveFeatures, CopiesAreOfTheirTensors) {
  const Numbers row = FeaturesOf(R"(program(
  A: input float32[64],
  C: output float32[64],
) {
  stage A_shared
  stage C
  kernel C grid [2, 1, 1] block [32, 1, 1] {
    blockIdx.x i in 0..2 {
      alloc A_shared: shared float32[32]
      threadIdx.x t in 0..32 {
        A_shared[t] = A[i*32 + t] @ A_shared
        barrier
        C[i*32 + t] = A_shared[31 - t] @ C
      }
    }
  }
}
)");
  // The row has A_shared_1 and C_0. A_0 and A_shared_0 belong to A, like A_shared_1.
  ASSERT_EQ(row.size(), size_t{2 * kTensor});
  EXPECT_EQ(CurveOf(row, 0, 0), Steps({{0, 0, 0}, {5, 5, 1}}));  // 32 elements, by two blocks
  EXPECT_EQ(CurveOf(row, 1, 0), Steps({{0, 0, 0}, {5, 5, 0}, {6, 6, 0}}));
}

// Rows of other shapes have the same length, so a model may learn from them.
TEST(CurveFeatures, ALoopMoreChangesNoLength) {
  EXPECT_EQ(FeaturesOf("program(\n  a: input float32[64],\n  b: output float32[64],\n) {\n"
                       "  stage s\n  kernel s {\n    for i in 0..64 {\n      b[i] = a[i] @ s\n"
                       "    }\n  }\n}\n")
                .size(),
            FeaturesOf("program(\n  a: input float32[6],\n  b: output float32[6],\n) {\n"
                       "  stage s\n  kernel s {\n    for i in 0..3 {\n      for j in 0..2 {\n"
                       "        b[i*2 + j] = a[i*2 + j] @ s\n      }\n    }\n  }\n}\n")
                .size());
}

}  // namespace
}  // namespace kiln::search
