#include "compiler/ir/ndarray.h"

#include <cmath>
#include <limits>

#include "base/status_testing.h"

namespace kiln::ir {
namespace {
using testing::HasSubstr;
constexpr Type kAllTypes[] = {kBool,     kInt8,    kInt32,   kInt64,      kFloat16,
                              kBFloat16, kFloat32, kFloat64, kFloat8E4M3, kFloat8E5M2};

TEST(NDArrayTest, StartsAtZeroAndKeepsWhatIsSet) {
  for (Type type : kAllTypes) {
    NDArray array(type, {2, 3});
    EXPECT_EQ(array.num_elements(), 6);
    EXPECT_EQ(static_cast<int>(array.bytes().size()), 6 * type.bytes());
    EXPECT_EQ(array.GetDouble(5), 0);
    array.SetDouble(5, 1);
    EXPECT_EQ(array.GetDouble(5), 1);
    EXPECT_EQ(array.GetDouble(4), 0);
  }
  EXPECT_EQ(NDArray(kFloat32, {}).num_elements(), 1);
}

TEST(NDArrayTest, Positions) {
  NDArray array(kFloat32, {2, 3, 4});
  EXPECT_EQ(array.Flatten(std::vector<int64_t>{1, 2, 3}), 23);
  EXPECT_EQ(array.Unflatten(23), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(array.Flatten(std::vector<int64_t>{1, 3, 0}), -1);
  EXPECT_EQ(array.Flatten(std::vector<int64_t>{0, 0, -1}), -1);
  EXPECT_EQ(array.Flatten(std::vector<int64_t>{0, 0}), -1);
}

TEST(NDArrayTest, RandomFillDependsOnTheSeedOnly) {
  for (Type type : kAllTypes) {
    NDArray a(type, {100}), b(type, {100}), c(type, {100});
    a.FillRandom(7);
    b.FillRandom(7);
    c.FillRandom(8);
    EXPECT_EQ(a, b);
    EXPECT_NE(a, c);
  }
  NDArray indices(kInt32, {1000});
  indices.FillRandom(1, RandomKind::kUniform, 5);
  NDArray small(kFloat16, {1000});
  small.FillRandom(1, RandomKind::kSmallIntegers);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(indices.Get(i).i >= 0 && indices.Get(i).i < 5);
    EXPECT_EQ(small.Get(i).f, std::round(small.Get(i).f));
    EXPECT_LE(std::abs(small.Get(i).f), 3);
  }
}

TEST(NDArrayTest, PoisonIsNaNInFloats) {
  for (Type type : {kFloat8E4M3, kFloat8E5M2, kFloat16, kBFloat16, kFloat32, kFloat64}) {
    NDArray array(type, {3});
    array.Poison();
    EXPECT_TRUE(std::isnan(array.GetDouble(2))) << TypeName(type);
  }
  NDArray ints(kInt32, {3});
  ints.Poison();
  EXPECT_EQ(ints.Get(0).i, -1);
}

TEST(NDArrayTest, CompareReportsFirstCountAndWorst) {
  NDArray expected(kFloat32, {2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6});
  NDArray found = expected;
  EXPECT_OK(Compare(found, expected, {}));
  found.SetDouble(1, 2.5);
  found.SetDouble(5, 9);
  EXPECT_THAT(Compare(found, expected, {}, "relu"),
              StatusIs(StatusCode::kFailedPrecondition,
                       "relu[0, 1] is 2.5, expected 2; 2 of 6 elements differ, most at [1, 2]: 9, "
                       "expected 6"));
  EXPECT_THAT(Compare(found, expected, {0, 1}),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("[1, 2] is 9")));
  EXPECT_OK(Compare(found, expected, {0.5, 0}));
}

TEST(NDArrayTest, CompareNonFinite) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  NDArray a(kFloat32, {3}, std::vector<double>{inf, nan, 1});
  EXPECT_OK(Compare(a, a, {}));
  NDArray b(kFloat32, {3}, std::vector<double>{inf, nan, nan});
  EXPECT_FALSE(Compare(b, a, {1, 1}).ok());
  NDArray c(kFloat32, {3}, std::vector<double>{-inf, nan, 1});
  EXPECT_FALSE(Compare(c, a, {1, 1}).ok());
}

TEST(NDArrayTest, CompareIntsExactly) {
  NDArray a(kInt64, {1}), b(kInt64, {1});
  a.Set(0, Value::Int((int64_t{1} << 60) + 1));
  b.Set(0, Value::Int(int64_t{1} << 60));
  EXPECT_FALSE(Compare(a, b, {1, 1}).ok());
}

TEST(NDArrayTest, CompareRefusesOtherShapes) {
  EXPECT_THAT(Compare(NDArray(kFloat32, {2}), NDArray(kFloat16, {2, 1}), {}, "x"),
              StatusIs(StatusCode::kInvalidArgument, "x is float32[2], expected float16[2, 1]"));
}

}  // namespace
}  // namespace kiln::ir
