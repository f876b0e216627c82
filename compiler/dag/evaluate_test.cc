#include "compiler/dag/evaluate.h"

#include <cmath>

#include "base/status_testing.h"
#include "compiler/dag/builder.h"
#include "compiler/dag/index_limit.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/dag/text.h"
#include "compiler/ir/scalar.h"

namespace kiln::dag {
namespace {

using ir::NDArray;
using ::testing::HasSubstr;

NDArray Numbers(ir::Type type, std::vector<int64_t> shape, std::vector<double> values) {
  return NDArray(type, std::move(shape), values);
}

// Returns an output of an operator of the library on given inputs.
NDArray RunOp(std::string_view name, std::string_view args, const OpOptions& options,
              std::span<const NDArray> inputs) {
  StatusOr<DagPtr> dag = BuildOp(name, args, options);
  EXPECT_TRUE(dag.ok()) << dag.status();
  StatusOr<std::vector<NDArray>> outputs = Evaluate(**dag, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs->at(0);
}

TEST(Evaluate, Matmul) {
  const NDArray inputs[] = {Numbers(ir::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6}),
                            Numbers(ir::kFloat32, {3, 2}, {1, 0, 0, 1, 2, -2})};
  EXPECT_EQ(RunOp("matmul", "2,2,3", {}, inputs), Numbers(ir::kFloat32, {2, 2}, {7, -4, 16, -7}));
}

TEST(Evaluate, ConvolutionWithPaddingBiasAndRelu) {
  NDArray data(ir::kFloat32, {1, 1, 3, 3}), weight(ir::kFloat32, {1, 1, 3, 3});
  data.Fill(1);
  weight.Fill(1);
  const NDArray inputs[] = {data, weight, Numbers(ir::kFloat32, {1, 1, 1, 1}, {-5})};
  // Number of neighbours inside of the image: 4 at corners, 6 at edges, 9 in the middle.
  EXPECT_EQ(RunOp("conv2d_nchw", "1,3,3,1,1,3,3,1,1", {.epilogue = {"bias", "relu"}}, inputs),
            Numbers(ir::kFloat32, {1, 1, 3, 3}, {0, 1, 0, 1, 4, 1, 0, 1, 0}));
}

TEST(Evaluate, GroupedConvolutionEqualsItsGroups) {
  ASSERT_OK_AND_ASSIGN(DagPtr grouped, BuildOp("conv2d_nchw", "1,5,5,4,4,3,3,2,1,1,4"));
  ASSERT_OK_AND_ASSIGN(DagPtr depthwise, BuildOp("depthwise_conv2d_nchw", "1,5,5,4,3,3,2,1"));
  const std::vector<NDArray> inputs = RandomInputs(*grouped, 7, ir::RandomKind::kSmallIntegers);
  ASSERT_OK_AND_ASSIGN(const auto a, Evaluate(*grouped, inputs));
  ASSERT_OK_AND_ASSIGN(const auto b, Evaluate(*depthwise, inputs));
  EXPECT_EQ(a[0], b[0]);
}

TEST(Evaluate, LayoutsAgree) {
  // The same convolution in both layouts, dilated, with unequal extents.
  ASSERT_OK_AND_ASSIGN(DagPtr nchw, BuildOp("conv2d_nchw", "2,7,6,4,3,3,2,2,2,2"));
  ASSERT_OK_AND_ASSIGN(DagPtr nhwc, BuildOp("conv2d_nhwc", "2,7,6,4,3,3,2,2,2,2"));
  const std::vector<NDArray> x = RandomInputs(*nchw, 3, ir::RandomKind::kSmallIntegers);
  // perm[d] is the NCHW (OIHW) axis of axis d.
  auto transpose = [](const NDArray& from, std::vector<size_t> perm) {
    std::vector<int64_t> shape;
    for (size_t d : perm) shape.push_back(from.shape()[d]);
    NDArray to(from.type(), shape);
    for (int64_t i = 0; i < to.num_elements(); ++i) {
      const std::vector<int64_t> at = to.Unflatten(i);
      std::vector<int64_t> source(at.size());
      for (size_t d = 0; d < at.size(); ++d) source[perm[d]] = at[d];
      to.Set(i, from.Get(from.Flatten(source)));
    }
    return to;
  };
  const NDArray y[] = {transpose(x[0], {0, 2, 3, 1}), transpose(x[1], {2, 3, 1, 0})};
  ASSERT_OK_AND_ASSIGN(const auto a, Evaluate(*nchw, x));
  ASSERT_OK_AND_ASSIGN(const auto b, Evaluate(*nhwc, y));
  EXPECT_EQ(transpose(a[0], {0, 2, 3, 1}), b[0]);
}

TEST(Evaluate, WinogradEqualsDirectConvolution) {
  for (int tile : {2, 4}) {
    SCOPED_TRACE(tile);
    const int alpha = tile + 2;
    // Kernel transforms of the same points.
    const std::vector<double> g =
        tile == 2
            ? std::vector<double>{1, 0, 0, .5, -.5, .5, .5, .5, .5, 0, 0, 1}
            : std::vector<double>{1,        0,         0,        -1.0 / 3,   1.0 / 3,   -1.0 / 3,
                                  1.0 / 3,  1.0 / 3,   1.0 / 3,  -16.0 / 15, -8.0 / 15, -4.0 / 15,
                                  1.0 / 15, -2.0 / 15, 4.0 / 15, 0,          0,         1};
    ASSERT_OK_AND_ASSIGN(DagPtr direct, BuildOp("conv2d_nhwc", "1,7,9,2,3,3,3,1,1"));
    ASSERT_OK_AND_ASSIGN(DagPtr fast,
                         BuildOp("conv2d_winograd_nhwc", fmt::format("1,7,9,2,3,tile={}", tile)));
    const std::vector<NDArray> x = RandomInputs(*direct, 5, ir::RandomKind::kSmallIntegers);
    NDArray weight(ir::kFloat32, {alpha, alpha, 2, 3});
    for (int64_t i = 0; i < weight.num_elements(); ++i) {
      const std::vector<int64_t> at = weight.Unflatten(i);
      double sum = 0;
      for (int64_t r = 0; r < 3; ++r) {
        for (int64_t s = 0; s < 3; ++s) {
          const int64_t from[] = {r, s, at[3], at[2]};
          sum += x[1].GetDouble(x[1].Flatten(from)) * g[static_cast<size_t>(at[0] * 3 + r)] *
                 g[static_cast<size_t>(at[1] * 3 + s)];
        }
      }
      weight.SetDouble(i, sum);
    }
    const NDArray inputs[] = {x[0], weight};
    ASSERT_OK_AND_ASSIGN(const auto a, Evaluate(*direct, x));
    ASSERT_OK_AND_ASSIGN(const auto b, Evaluate(*fast, inputs));
    EXPECT_OK(ir::Compare(b[0], a[0], {.relative = 1e-3, .absolute = 1e-3}));
  }
}

TEST(Evaluate, Softmax) {
  const NDArray inputs[] = {Numbers(ir::kFloat64, {2, 2}, {0, std::log(3), 1000, 1000})};
  const NDArray got = RunOp("softmax", "2,2", {.dtype = ir::kFloat64}, inputs);
  EXPECT_OK(
      ir::Compare(got, Numbers(ir::kFloat64, {2, 2}, {.25, .75, .5, .5}), {.relative = 1e-12}));
}

TEST(Evaluate, MaskedRowOfMinusInfinity) {
  const NDArray inputs[] = {Numbers(ir::kFloat32, {2, 2}, {-INFINITY, -INFINITY, -INFINITY, 3})};
  EXPECT_EQ(RunOp("max", "2,2,axis=1", {}, inputs), Numbers(ir::kFloat32, {2}, {-INFINITY, 3}));
  EXPECT_EQ(RunOp("argmax", "2,2,axis=1", {}, inputs), Numbers(ir::kInt32, {2}, {0, 1}));
}

TEST(Evaluate, ArgmaxTakesTheFirst) {
  const NDArray inputs[] = {Numbers(ir::kFloat32, {2, 4}, {1, 5, 5, 0, -1, -1, -2, -1})};
  EXPECT_EQ(RunOp("argmax", "2,4,axis=-1", {}, inputs), Numbers(ir::kInt32, {2}, {1, 0}));
  EXPECT_EQ(RunOp("argmin", "2,4,axis=-1", {}, inputs), Numbers(ir::kInt32, {2}, {3, 2}));
  // The index is over the flattened tensor.
  EXPECT_EQ(RunOp("argmax", "2,4", {}, inputs), Numbers(ir::kInt32, {}, {1}));
}

TEST(Evaluate, SeveralReductionsOverTheSameAxes) {
  ASSERT_OK_AND_ASSIGN(const DagPtr dag, ParseDag(R"(
input A: float32[2, 3]
S[i: 2] = sum(k: 3) (A[i, k], A[i, k] * A[i, k])
M[i: 2] = min(k: 3) (A[i, k], -A[i, k])
T[i: 2] = (S.v1[i] - S.v0[i], M.v0[i] + M.v1[i])
)"));
  const NDArray inputs[] = {Numbers(ir::kFloat32, {2, 3}, {1, 2, 3, -1, 0, 5})};
  ASSERT_OK_AND_ASSIGN(const std::vector<NDArray> got, Evaluate(*dag, inputs));
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0], Numbers(ir::kFloat32, {2}, {14 - 6, 26 - 4}));
  EXPECT_EQ(got[1], Numbers(ir::kFloat32, {2}, {1 - 3, -1 - 5}));
}

TEST(Evaluate, Reductions) {
  const NDArray inputs[] = {Numbers(ir::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6})};
  EXPECT_EQ(RunOp("sum", "2,3", {}, inputs), Numbers(ir::kFloat32, {}, {21}));
  EXPECT_EQ(RunOp("sum", "2,3,axis=0", {}, inputs), Numbers(ir::kFloat32, {3}, {5, 7, 9}));
  EXPECT_EQ(RunOp("mean", "2,3,axis=1,keepdims=1", {}, inputs),
            Numbers(ir::kFloat32, {2, 1}, {2, 5}));
  EXPECT_EQ(RunOp("prod", "2,3,axis=1", {}, inputs), Numbers(ir::kFloat32, {2}, {6, 120}));
  EXPECT_EQ(RunOp("min", "2,3,axis=-2", {}, inputs), Numbers(ir::kFloat32, {3}, {1, 2, 3}));
}

TEST(Evaluate, Pools) {
  const NDArray inputs[] = {Numbers(ir::kFloat32, {1, 1, 2, 2}, {1, 2, 3, -4})};
  EXPECT_EQ(RunOp("max_pool2d", "1,2,2,1,2,2,1,1", {}, inputs),
            Numbers(ir::kFloat32, {1, 1, 3, 3}, {1, 2, 2, 3, 3, 2, 3, 3, -4}));
  EXPECT_EQ(RunOp("avg_pool2d", "1,2,2,1,2,2,1,1", {}, inputs),
            Numbers(ir::kFloat32, {1, 1, 3, 3}, {1, 1.5, 2, 2, .5, -1, 3, -.5, -4}));
  EXPECT_EQ(RunOp("avg_pool2d", "1,2,2,1,2,2,2,1,count_include_pad=1", {}, inputs),
            Numbers(ir::kFloat32, {1, 1, 2, 2}, {.25, .5, .75, -1}));
  EXPECT_EQ(RunOp("global_avg_pool2d", "1,2,2,1", {}, inputs),
            Numbers(ir::kFloat32, {1, 1, 1, 1}, {.5}));
  EXPECT_EQ(RunOp("global_max_pool2d", "1,2,2,1", {}, inputs),
            Numbers(ir::kFloat32, {1, 1, 1, 1}, {3}));
}

TEST(Evaluate, ActivationsAtKnownPoints) {
  const NDArray inputs[] = {Numbers(ir::kFloat64, {3}, {-4, 0, 2})};
  auto expect = [&](std::string_view name, std::vector<double> values) {
    SCOPED_TRACE(name);
    const NDArray got = RunOp(name, "3", {.dtype = ir::kFloat64}, inputs);
    EXPECT_OK(ir::Compare(got, Numbers(ir::kFloat64, {3}, std::move(values)),
                          {.relative = 1e-9, .absolute = 1e-9}));
  };
  auto phi = [](double x) { return .5 * (1 + std::erf(x / std::sqrt(2.0))); };
  auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  expect("relu", {0, 0, 2});
  expect("relu6", {0, 0, 2});
  expect("leaky_relu", {-.4, 0, 2});
  expect("gelu", {-4 * phi(-4), 0, 2 * phi(2)});
  expect("silu", {-4 * sigmoid(-4), 0, 2 * sigmoid(2)});
  expect("hard_swish", {0, 0, 2 * 5.0 / 6});
  expect("softplus", {std::log1p(std::exp(-4.0)), std::log(2.0), std::log1p(std::exp(2.0))});
  expect("elu", {std::expm1(-4.0), 0, 2});
  expect("sigmoid", {sigmoid(-4), .5, sigmoid(2)});
}

TEST(Evaluate, BroadcastAndEpilogues) {
  const NDArray inputs[] = {Numbers(ir::kFloat32, {2, 2}, {1, 2, 3, 4}),
                            Numbers(ir::kFloat32, {2, 1}, {10, 20})};
  EXPECT_EQ(RunOp("add", "2,2,broadcast=1", {}, inputs),
            Numbers(ir::kFloat32, {2, 2}, {11, 12, 23, 24}));
  const NDArray more[] = {Numbers(ir::kFloat32, {1, 2}, {1, -2}),
                          Numbers(ir::kFloat32, {1, 2}, {3, 4}),
                          Numbers(ir::kFloat32, {1, 2}, {1, 1})};
  EXPECT_EQ(RunOp("relu", "1,2", {.epilogue = {"scale", "residual"}}, more),
            Numbers(ir::kFloat32, {1, 2}, {4, 1}));
}

TEST(Evaluate, Float16SumsAreRoundedAtEachStepUnlessWide) {
  ASSERT_OK_AND_ASSIGN(DagPtr dag,
                       BuildOp("sum", "4096", {.dtype = ir::kFloat16, .out_dtype = ir::kFloat16}));
  NDArray ones(ir::kFloat16, {4096});
  ones.Fill(1);
  ASSERT_OK_AND_ASSIGN(const auto narrow, Evaluate(*dag, std::span(&ones, 1)));
  ASSERT_OK_AND_ASSIGN(const auto wide,
                       Evaluate(*dag, std::span(&ones, 1), {.wide_accumulation = true}));
  // 2048 + 1 is 2048 in float16.
  EXPECT_EQ(narrow[0].GetDouble(0), 2048);
  EXPECT_EQ(wide[0].GetDouble(0), 4096);
}

TEST(Evaluate, OperatorsSumFloat16InFloat32) {
  NDArray ones(ir::kFloat16, {4096});
  ones.Fill(1);
  const NDArray inputs[] = {ones};
  EXPECT_EQ(RunOp("sum", "4096", {.dtype = ir::kFloat16}, inputs),
            Numbers(ir::kFloat16, {}, {4096}));
  NDArray a(ir::kBFloat16, {1, 1000}), b(ir::kBFloat16, {1000, 1}), bias(ir::kBFloat16, {1, 1});
  a.Fill(1);
  b.Fill(1);
  bias.Fill(24);
  const NDArray more[] = {a, b, bias};
  EXPECT_EQ(RunOp("matmul", "1,1,1000", {.dtype = ir::kBFloat16, .epilogue = {"bias"}}, more),
            Numbers(ir::kBFloat16, {1, 1}, {1024}));
}

// 256 + 1 is 256 in either type.
TEST(Evaluate, OperatorsSumFloat8InFloat32) {
  for (const ir::Type type : {ir::kFloat8E4M3, ir::kFloat8E5M2}) {
    NDArray ones(type, {448});
    ones.Fill(1);
    const NDArray inputs[] = {ones};
    EXPECT_EQ(RunOp("sum", "448", {.dtype = type}, inputs), Numbers(type, {}, {448}));
    NDArray a(type, {1, 321}), b(type, {321, 1});
    a.Fill(1);
    b.Fill(-1);
    const NDArray more[] = {a, b};
    EXPECT_EQ(RunOp("matmul", "1,1,321", {.dtype = type, .out_dtype = ir::kFloat32}, more),
              Numbers(ir::kFloat32, {1, 1}, {-321}));
    // A sum that does not fit becomes the largest number.
    b.Fill(type == ir::kFloat8E4M3 ? 2 : 256);
    const NDArray large[] = {a, b};
    EXPECT_EQ(RunOp("matmul", "1,1,321", {.dtype = type}, large),
              Numbers(type, {1, 1}, {ir::LargestFinite(type)}));
  }
}

TEST(Evaluate, Int8ProductsAreSummedInInt32) {
  NDArray a(ir::kInt8, {1, 100}), b(ir::kInt8, {100, 1});
  a.Fill(100);
  b.Fill(100);
  const NDArray inputs[] = {a, b};
  EXPECT_EQ(RunOp("matmul", "1,1,100", {.dtype = ir::kInt8}, inputs),
            Numbers(ir::kInt32, {1, 1}, {1000000}));
}

TEST(Evaluate, GatherChecksItsIndices) {
  DagBuilder b;
  TensorRef table = b.Placeholder("table", ir::kFloat32, {5, 2});
  TensorRef index = b.Placeholder("index", ir::kInt32, {3});
  b.Compute("out", {{"i", 3}, {"j", 2}}, [&](Vars v) { return table(index(v[0]), v[1]); });
  ASSERT_OK_AND_ASSIGN(DagPtr dag, b.Build());
  const int index_op = dag->op(0).name() == "index" ? 0 : 1;
  EXPECT_EQ(IndexLimits(*dag)[static_cast<size_t>(index_op)], 5);
  EXPECT_EQ(IndexLimits(*dag)[static_cast<size_t>(1 - index_op)], 0);
  std::vector<NDArray> inputs = RandomInputs(*dag, 11);
  EXPECT_OK(Evaluate(*dag, inputs));
  inputs[static_cast<size_t>(index_op)].SetDouble(1, 5);
  EXPECT_THAT(Evaluate(*dag, inputs),
              StatusIs(StatusCode::kOutOfRange, HasSubstr("out: index [5, 0]")));
}

TEST(Evaluate, RefusesInputsThatDoNotFit) {
  ASSERT_OK_AND_ASSIGN(DagPtr dag, BuildOp("relu", "3"));
  const NDArray shorter(ir::kFloat32, {2}), ints(ir::kInt32, {3}), good(ir::kFloat32, {3});
  EXPECT_THAT(Evaluate(*dag, std::span(&shorter, 1)),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected float32[3]")));
  EXPECT_THAT(Evaluate(*dag, std::span(&ints, 1)),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("int32[3]")));
  EXPECT_THAT(Evaluate(*dag, {}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("got 0 inputs")));
  const NDArray two[] = {good, good};
  EXPECT_THAT(Evaluate(*dag, two),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("got 2 inputs")));
}

// Every operator of the library runs, and its results are finite.
TEST(Evaluate, EveryOperator) {
  for (const OpCase& c : SmallOpCases()) {
    const DagPtr dag = c.Build();
    std::vector<NDArray> inputs = RandomInputs(*dag, 1);
    // Inputs are positive for log, sqrt and power.
    for (NDArray& input : inputs) {
      if (!input.type().is_float()) continue;
      for (int64_t i = 0; i < input.num_elements(); ++i)
        input.SetDouble(i, 0.1 + std::abs(input.GetDouble(i)));
    }
    ASSERT_OK_AND_ASSIGN(const auto outputs, Evaluate(*dag, inputs));
    for (int64_t i = 0; i < outputs[0].num_elements(); ++i) {
      ASSERT_TRUE(std::isfinite(outputs[0].GetDouble(i))) << c.Name();
    }
  }
}

}  // namespace
}  // namespace kiln::dag
