#include "client/check/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/status_testing.h"

namespace kiln::client {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ir::NDArray Three(double a, double b, double c) {
  const double values[] = {a, b, c};
  return {ir::kFloat32, {3}, values};
}

TEST(JudgeOutput, OfAnOnlineSoftmax) {
  const ir::NDArray want = Three(std::nan(""), 2, std::nan(""));
  int asked = 0;
  const auto of_variant = [&]() -> StatusOr<ir::NDArray> {
    ++asked;
    return Three(1, 2, kInfinity);
  };
  const absl::FunctionRef<StatusOr<ir::NDArray>()> online = of_variant;
  const auto judge = [&](const ir::NDArray& got) {
    auto verdict = JudgeOutput("out", got, want, {}, &online);
    KILN_CHECK(verdict.ok(), "{}", Message(verdict.status()));
    return *verdict;
  };
  // The output equals the reference.
  EXPECT_EQ(judge(want).problem, "");
  EXPECT_EQ(asked, 0);
  // The output equals the variant where the reference has NaN.
  const Verdict by_variant = judge(Three(1, 2, kInfinity));
  EXPECT_EQ(by_variant.problem, "");
  EXPECT_EQ(by_variant.online, 2);
  EXPECT_EQ(judge(Three(std::nan(""), 2, kInfinity)).online, 1);
  // The outputs equal neither of the two.
  for (const ir::NDArray& got : {Three(3, 2, kInfinity), Three(1, 2, -kInfinity),
                                 Three(1, 5, kInfinity), Three(1, std::nan(""), kInfinity)}) {
    const Verdict wrong = judge(got);
    EXPECT_THAT(wrong.problem, HasSubstr("output out: element"));
    EXPECT_EQ(wrong.online, 0);
  }
}

TEST(JudgeOutput, OfOtherPrograms) {
  ASSERT_OK_AND_ASSIGN(const Verdict verdict,
                       JudgeOutput("out", Three(1, 2, 3), Three(std::nan(""), 2, 3), {}, nullptr));
  EXPECT_THAT(verdict.problem, HasSubstr("got 1, expected nan"));
}

}  // namespace
}  // namespace kiln::client
