#include "search/templates/loop_features.h"

#include <cmath>

#include "base/status_testing.h"
#include "compiler/ir/program_text.h"

namespace kiln::search {
namespace {

using Numbers = std::vector<float>;

constexpr int kHead = 4 + 11 + 3;  // features of a loop before its accesses
constexpr int kAccess = 6;

std::vector<float> FeaturesOf(std::string_view text) {
  const StatusOr<ir::Program> program = ir::ParseProgram(text);
  KILN_CHECK(program.ok(), "{}", Message(program.status()));
  return LoopFeatures(*program);
}

// sign(x) * log2(|x| + 1)
float Log(double x) { return static_cast<float>(std::copysign(std::log2(std::abs(x) + 1), x)); }

Numbers Part(const Numbers& row, int start, int size) {
  return {row.begin() + start, row.begin() + start + size};
}

Numbers Access(double stride, double count, double reuse, double thread_count = 0,
               double thread_reuse = 0) {
  return {Log(stride), Log(-1), Log(count), Log(reuse), Log(thread_count), Log(thread_reuse)};
}

TEST(LoopFeatures, OfARowSum) {
  const Numbers row = FeaturesOf(R"(program(
  a: input float32[8, 4],
  c: output float32[8],
) {
  stage s
  kernel s {
    parallel i in 0..8 {
      c[i] = 0.0 @ s
      for k in 0..4 {
        c[i] = c[i] + a[i, k]*2.0 @ s
      }
    }
  }
}
)");
  const int k = kHead + 4 * kAccess;  // the second loop begins here
  ASSERT_EQ(row.size(), static_cast<size_t>(k + kHead + 3 * kAccess));
  EXPECT_EQ(Part(row, 0, kHead), (Numbers{Log(8), 0, Log(8), Log(32),       //
                                          0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,  // parallel
                                          0, 0, 0}));
  EXPECT_EQ(Part(row, kHead, kAccess), Access(4, 32, 1));                   // a[i, k]
  EXPECT_EQ(Part(row, kHead + kAccess, kAccess), Access(1, 8, 1));          // c[i] = 0.0
  EXPECT_EQ(Part(row, kHead + 2 * kAccess, kAccess), Access(1, 8, 4));      // c[i] = ...
  EXPECT_EQ(Part(row, kHead + 3 * kAccess, kAccess), Access(1, 8, 4));      // ... c[i] + ...
  EXPECT_EQ(Part(row, k, kHead), (Numbers{Log(4), 1, Log(32), Log(4),       //
                                          0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0,  // serial
                                          Log(1), Log(1), 0}));
  EXPECT_EQ(Part(row, k + kHead, kAccess), Access(1, 4, 1));
  EXPECT_EQ(Part(row, k + kHead + kAccess, kAccess), Access(0, 1, 4));
}

TEST(LoopFeatures, OfThreads) {
  const Numbers row = FeaturesOf(R"(program(
  a: input float32[8],
  b: output float32[32],
) {
  stage s
  kernel s grid [4, 1, 1] block [8, 1, 1] {
    blockIdx.x i in 0..4 {
      threadIdx.x t in 0..8 {
        b[i*8 + t] = a[t] @ s
      }
    }
  }
}
)");
  ASSERT_EQ(row.size(), static_cast<size_t>(2 * (kHead + 2 * kAccess)));
  EXPECT_EQ(row[4], 1);                                                    // blockIdx.x
  EXPECT_EQ(Part(row, kHead, kAccess), Access(0, 8, 4, 1, 4));             // a
  EXPECT_EQ(Part(row, kHead + kAccess, kAccess), Access(8, 32, 1, 4, 1));  // b
  const int t = kHead + 2 * kAccess;
  EXPECT_EQ(row[t + 4 + 3], 1);  // threadIdx.x
  EXPECT_EQ(Part(row, t + kHead, kAccess), Access(1, 8, 1));
  EXPECT_EQ(Part(row, t + kHead + kAccess, kAccess), Access(1, 8, 1));
}

TEST(LoopFeatures, ModuliAreThoseAboveAVariable) {
  const Numbers row = FeaturesOf(R"(program(
  a: input float32[3],
  b: output float32[12],
) {
  stage s
  kernel s {
    for i in 0..12 {
      b[i] = a[i % 3] @ s
    }
  }
}
)");
  EXPECT_EQ(row[kHead], Log(1));
  EXPECT_EQ(row[kHead + 1], Log(3));
  EXPECT_EQ(row[kHead + kAccess + 1], Log(-1));
}

}  // namespace
}  // namespace kiln::search
