#include <cmath>
#include <limits>
#include <numbers>

#include "base/status_testing.h"
#include "graph/run_op_testing.h"
#include "graph/text.h"

namespace kiln::graph {
namespace {

using ir::NDArray;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr double kInf = std::numeric_limits<double>::infinity();

NDArray Floats(std::vector<double> values) {
  return NDArray(ir::kFloat32, {static_cast<int64_t>(values.size())}, values);
}
NDArray Ints(std::vector<double> values) {
  return NDArray(ir::kInt64, {static_cast<int64_t>(values.size())}, values);
}

TEST(ElementwiseTest, FunctionsOfOneNumber) {
  struct Case {
    std::string_view call;
    double (*f)(double);
    double low, high;
  };
  const Case cases[] = {
      {"relu(a)", [](double x) { return std::max(x, 0.0); }, -3, 3},
      {"sigmoid(a)", [](double x) { return 1 / (1 + std::exp(-x)); }, -9, 9},
      {"tanh(a)", [](double x) { return std::tanh(x); }, -4, 4},
      {"gelu(a)", [](double x) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2)); }, -4, 4},
      {"silu(a)", [](double x) { return x / (1 + std::exp(-x)); }, -4, 4},
      {"softplus(a)", [](double x) { return std::log1p(std::exp(x)); }, -20, 20},
      {"mish(a)", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, -9, 9},
      {"softsign(a)", [](double x) { return x / (1 + std::abs(x)); }, -9, 9},
      {"hard_swish(a)", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }, -5, 5},
      {"leaky_relu(a) {alpha: 0.3}", [](double x) { return x < 0 ? 0.3 * x : x; }, -3, 3},
      {"elu(a) {alpha: 2}", [](double x) { return x < 0 ? 2 * std::expm1(x) : x; }, -3, 3},
      {"celu(a) {alpha: 2}",
       [](double x) { return std::max(x, 0.0) + std::min(0.0, 2 * std::expm1(x / 2)); }, -3, 3},
      {"selu(a) {alpha: 2, gamma: 3}", [](double x) { return 3 * (x > 0 ? x : 2 * std::expm1(x)); },
       -3, 3},
      {"hard_sigmoid(a) {alpha: 0.5, beta: 0.25}",
       [](double x) { return std::clamp(x * 0.5 + 0.25, 0.0, 1.0); }, -3, 3},
      {"thresholded_relu(a) {alpha: 0.5}", [](double x) { return x > 0.5 ? x : 0; }, -3, 3},
      {"shrink(a) {lambda: 1, bias: 0.5}",
       [](double x) { return x < -1  ? x + 0.5
                             : x > 1 ? x - 0.5
                                     : 0; }, -3, 3},
      {"exp(a)", [](double x) { return std::exp(x); }, -5, 5},
      {"log(a)", [](double x) { return std::log(x); }, 0.01, 9},
      {"sqrt(a)", [](double x) { return std::sqrt(x); }, 0, 9},
      {"rsqrt(a)", [](double x) { return 1 / std::sqrt(x); }, 0.1, 9},
      {"erf(a)", [](double x) { return std::erf(x); }, -3, 3},
      {"sin(a)", [](double x) { return std::sin(x); }, -7, 7},
      {"cos(a)", [](double x) { return std::cos(x); }, -7, 7},
      {"tan(a)", [](double x) { return std::tan(x); }, -1.5, 1.5},
      {"asin(a)", [](double x) { return std::asin(x); }, -1, 1},
      {"acos(a)", [](double x) { return std::acos(x); }, -1, 1},
      {"atan(a)", [](double x) { return std::atan(x); }, -20, 20},
      {"sinh(a)", [](double x) { return std::sinh(x); }, -4, 4},
      {"cosh(a)", [](double x) { return std::cosh(x); }, -4, 4},
      {"asinh(a)", [](double x) { return std::asinh(x); }, -40, 40},
      {"acosh(a)", [](double x) { return std::acosh(x); }, 1, 40},
      {"atanh(a)", [](double x) { return std::atanh(x); }, -0.9, 0.9},
      {"floor(a)", [](double x) { return std::floor(x); }, -3, 3},
      {"ceil(a)", [](double x) { return std::ceil(x); }, -3, 3},
      {"round(a)", [](double x) { return std::nearbyint(x); }, -3, 3},
      {"reciprocal(a)", [](double x) { return 1 / x; }, 0.5, 3},
      {"sign(a)", [](double x) { return static_cast<double>((x > 0) - (x < 0)); }, -3, 3},
      {"abs(a)", [](double x) { return std::abs(x); }, -3, 3},
      {"square(a)", [](double x) { return x * x; }, -3, 3},
      {"negative(a)", [](double x) { return -x; }, -3, 3},
      {"clip(a) {min: -1, max: 0.5}", [](double x) { return std::clamp(x, -1.0, 0.5); }, -3, 3},
      {"identity(a)", [](double x) { return x; }, -3, 3},
  };
  for (const Case& c : cases) {
    std::vector<double> in;
    for (int i = 0; i <= 64; ++i)
      in.push_back(static_cast<float>(c.low + (c.high - c.low) * i / 64));
    const std::vector<double> out = Doubles(RunOp(c.call, {Floats(in)}));
    for (size_t i = 0; i < in.size(); ++i) {
      const double want = c.f(in[i]);
      EXPECT_NEAR(out[i], want, 2e-6 * (1 + std::abs(want))) << c.call << " of " << in[i];
    }
  }
}

TEST(ElementwiseTest, Float16IsComputedInFloat32AndRoundedOnce) {
  NDArray x(ir::kFloat16, {64});
  x.FillRandom(5);
  const NDArray y = RunOp("gelu(a)", {x});
  ASSERT_EQ(y.type(), ir::kFloat16);
  for (int64_t i = 0; i < 64; ++i) {
    const double v = x.GetDouble(i);
    NDArray want(ir::kFloat16, {1});
    want.SetDouble(0, v / 2 * (1 + std::erf(v / std::numbers::sqrt2)));
    EXPECT_NEAR(y.GetDouble(i), want.GetDouble(0), 1e-3 * std::abs(v));
  }
}

TEST(ElementwiseTest, WholeNumbers) {
  const NDArray a = Ints({7, -7, 7, -7, 6, 0}), b = Ints({2, 2, -2, -2, 3, 5});
  EXPECT_THAT(Doubles(RunOp("div(a, b)", {a, b})), ElementsAre(3, -3, -3, 3, 2, 0));
  EXPECT_THAT(Doubles(RunOp("mod(a, b)", {a, b})), ElementsAre(1, 1, -1, -1, 0, 0));
  EXPECT_THAT(Doubles(RunOp("fmod(a, b)", {a, b})), ElementsAre(1, -1, 1, -1, 0, 0));
  EXPECT_THAT(Doubles(RunOp("sign(a)", {a})), ElementsAre(1, -1, 1, -1, 1, 0));
  EXPECT_THAT(Doubles(RunOp("clip(a) {min: -1.5, max: 6.5}", {a})),
              ElementsAre(6, -1, 6, -1, 6, 0));
  EXPECT_THAT(Doubles(RunOp("less(a, b)", {a, b})), ElementsAre(0, 1, 0, 1, 0, 1));
}

TEST(ElementwiseTest, RemaindersOfFloats) {
  const NDArray a = Floats({-4.3, 7.2, 5.0, 4.3, -7.2, 8.0}),
                b = Floats({2.1, -3.4, 8.0, -2.1, 3.4, 5.0});
  const std::vector<double> x = Doubles(a), y = Doubles(b);
  const std::vector<double> fmods = Doubles(RunOp("fmod(a, b)", {a, b}));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(fmods[i], std::fmod(x[i], y[i]), 1e-5);
}

TEST(ElementwiseTest, Broadcast) {
  const NDArray a(ir::kFloat32, {2, 1, 3}, std::vector<double>{1, 2, 3, 4, 5, 6});
  const NDArray b(ir::kFloat32, {2, 1}, std::vector<double>{10, 20});
  const NDArray y = RunOp("add(a, b)", {a, b});
  EXPECT_THAT(y.shape(), ElementsAre(2, 2, 3));
  EXPECT_THAT(Doubles(y), ElementsAre(11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26));
  const NDArray scalar(ir::kFloat32, {}, std::vector<double>{2});
  EXPECT_THAT(RunOp("mul(a, b)", {scalar, a}).shape(), ElementsAre(2, 1, 3));
  const NDArray condition(ir::kBool, {3}, std::vector<double>{1, 0, 1});
  EXPECT_THAT(Doubles(RunOp("where(a, b, c)", {condition, a, scalar})),
              ElementsAre(1, 2, 3, 4, 2, 6));
}

TEST(ElementwiseTest, NotNumbersAndInfinities) {
  const NDArray a = Floats({1, std::nan(""), kInf, -kInf, 0});
  EXPECT_THAT(Doubles(RunOp("is_nan(a)", {a})), ElementsAre(0, 1, 0, 0, 0));
  EXPECT_THAT(Doubles(RunOp("is_inf(a)", {a})), ElementsAre(0, 0, 1, 1, 0));
  EXPECT_THAT(Doubles(RunOp("is_inf(a) {negative: 0}", {a})), ElementsAre(0, 0, 1, 0, 0));
  EXPECT_THAT(Doubles(RunOp("is_inf(a) {positive: 0}", {a})), ElementsAre(0, 0, 0, 1, 0));
  EXPECT_EQ(RunOp("is_inf(a)", {a}).type(), ir::kBool);
}

TEST(ElementwiseTest, Casts) {
  const NDArray a = Floats({1.9, -1.9, 0, 0.5});
  EXPECT_THAT(Doubles(RunOp("cast(a) {to: int32}", {a})), ElementsAre(1, -1, 0, 0));
  EXPECT_THAT(Doubles(RunOp("cast(a) {to: bool}", {a})), ElementsAre(1, 1, 0, 1));
  EXPECT_EQ(RunOp("cast(a) {to: float16}", {a}).type(), ir::kFloat16);
}

TEST(MatmulTest, VectorsMatricesAndBatches) {
  struct Case {
    std::vector<int64_t> a, b, want;
  };
  const Case cases[] = {
      {{3}, {3}, {}},
      {{2, 3}, {3}, {2}},
      {{3}, {3, 4}, {4}},
      {{2, 3}, {3, 4}, {2, 4}},
      {{5, 2, 3}, {3, 4}, {5, 2, 4}},
      {{5, 1, 2, 3}, {6, 3, 4}, {5, 6, 2, 4}},
      {{3}, {6, 3, 4}, {6, 4}},
      {{6, 2, 3}, {3}, {6, 2}},
  };
  for (const Case& c : cases) {
    NDArray a(ir::kFloat32, c.a), b(ir::kFloat32, c.b);
    a.Fill(1);
    b.Fill(2);
    const NDArray y = RunOp("matmul(a, b)", {a, b});
    EXPECT_EQ(y.shape(), c.want);
    for (double v : Doubles(y)) EXPECT_EQ(v, 6);
  }
  const NDArray a(ir::kFloat32, {2, 2}, std::vector<double>{1, 2, 3, 4});
  const NDArray b(ir::kFloat32, {2, 2}, std::vector<double>{5, 6, 7, 8});
  EXPECT_THAT(Doubles(RunOp("matmul(a, b)", {a, b})), ElementsAre(19, 22, 43, 50));
  EXPECT_THAT(Doubles(RunOp("matmul(a, b) {transpose_b: 1}", {a, b})), ElementsAre(17, 23, 39, 53));
  EXPECT_THAT(
      ParseGraph("input a: float32[2, 3]\ninput b: float32[4, 3]\ny = matmul(a, b)\noutput y"),
      StatusIs(StatusCode::kInvalidArgument,
               ::testing::HasSubstr("can't be multiplied: sums over 3 and 4")));
}

}  // namespace
}  // namespace kiln::graph
