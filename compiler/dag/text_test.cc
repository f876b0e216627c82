#include "compiler/dag/text.h"

#include <random>

#include "base/status_testing.h"
#include "compiler/dag/builder.h"
#include "compiler/dag/evaluate.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/dag/workload_key.h"

namespace kiln::dag {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Checks that parse(print(x)) == x and that the text is stable.
void ExpectRoundTrip(const Dag& dag) {
  const std::string text = PrintDag(dag);
  StatusOr<DagPtr> parsed = ParseDag(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  EXPECT_TRUE(Equal(**parsed, dag)) << text << "\n" << PrintDag(**parsed);
  EXPECT_EQ(PrintDag(**parsed), text);
  EXPECT_EQ(WorkloadKey(**parsed), WorkloadKey(dag));
  EXPECT_EQ((*parsed)->flop_count(), dag.flop_count());
  EXPECT_EQ((*parsed)->arguments(), dag.arguments());
}

constexpr std::string_view kMatmul = R"(input A: float32[512, 256]
input B: float32[256, 128]
C[i: 512, j: 128] = sum(k: 256) A[i, k]*B[k, j]
input bias: float32[128]
D[i: 512, j: 128] = max(C[i, j] + bias[j], 0.0)
)";

TEST(Text, PrintsWhatAPersonWouldWrite) {
  ASSERT_OK_AND_ASSIGN(DagPtr dag, ParseDag(R"(
# relu(A @ B + bias)
let M = 512
input A: float32[M, 256]
input B: float32[256, 128]
input bias: float32[128]
C[i: M, j: 64 * 2] = sum(k: 256) A[i, k] * B[k, j]
D[i: M, j: 128] = max(C[i, j] + bias[j], 0)
)"));
  std::string text = PrintDag(*dag);
  std::string expected(kMatmul);
  std::erase(text, ' ');
  std::erase(expected, ' ');
  EXPECT_EQ(text, expected);
  ExpectRoundTrip(*dag);
}

TEST(Text, EveryOperatorRoundTrips) {
  for (const OpCase& c : SmallOpCases()) {
    SCOPED_TRACE(c.Name());
    ExpectRoundTrip(*c.Build());
    if (c.dtype != ir::kFloat32) continue;
    for (ir::Type type :
         {ir::kFloat16, ir::kFloat64, ir::kBFloat16, ir::kFloat8E4M3, ir::kFloat8E5M2}) {
      ASSERT_OK_AND_ASSIGN(DagPtr dag, BuildOp(c.op, c.args, {.dtype = type}));
      ExpectRoundTrip(*dag);
    }
    if (std::string_view(c.op).starts_with("arg")) continue;
    ASSERT_OK_AND_ASSIGN(
        DagPtr dag,
        BuildOp(c.op, c.args, {.epilogue = {"bias", "residual", "relu", "gelu", "relu"}}));
    ExpectRoundTrip(*dag);
  }
}

// ---- forms that a person may write and that are never printed

std::string PrintedOf(std::string_view text) {
  const StatusOr<DagPtr> dag = ParseDag(text);
  if (!dag.ok()) return std::string(Message(dag.status()));
  ExpectRoundTrip(**dag);
  return PrintDag(**dag);
}

std::vector<double> Outputs(std::string_view text, uint64_t seed = 3) {
  const StatusOr<DagPtr> dag = ParseDag(text);
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  const auto outputs = Evaluate(**dag, RandomInputs(**dag, seed, ir::RandomKind::kUniform));
  KILN_CHECK(outputs.ok(), "{}", Message(outputs.status()));
  std::vector<double> values;
  for (const ir::NDArray& output : *outputs) {
    for (int64_t i = 0; i < output.num_elements(); ++i) values.push_back(output.GetDouble(i));
  }
  return values;
}

TEST(WrittenText, ReductionsInsideOfExpressions) {
  EXPECT_EQ(PrintedOf("input A: float32[8, 9]\n"
                      "D[i: 8] = 1.0 + sum(k: 9) A[i, k] * 2.0"),
            "input A: float32[8, 9]\n"
            "D.sum[i: 8] = sum(k: 9) A[i, k]*2.0\n"
            "D[i: 8] = 1.0 + D.sum[i]\n");
  // Each reduction has the axes that it reads. Equal reductions become one.
  EXPECT_EQ(PrintedOf("input x: float32[4, 6]\n"
                      "y[i: 4, j: 6] = exp(x[i, j] - max(k: 6) x[i, k]) /\n"
                      "    (sum(k: 6) exp(x[i, k] - max(l: 6) x[i, l])) + sum(a: 4, b: 6) x[a, b]"),
            "input x: float32[4, 6]\n"
            "y.max[i: 4] = max(k: 6) x[i, k]\n"
            "y.sum[i: 4] = sum(k: 6) exp(x[i, k] - y.max[i])\n"
            "y.sum2[] = sum(a: 4, b: 6) x[a, b]\n"
            "y[i: 4, j: 6] = exp(x[i, j] - y.max[i]) / y.sum[i] + y.sum2[]\n");
  EXPECT_EQ(PrintedOf("input A: float32[3]\nD[] = (sum(k: 3) A[k], max(k: 3) A[k])"),
            "input A: float32[3]\n"
            "D.sum[] = sum(k: 3) A[k]\n"
            "D.max[] = max(k: 3) A[k]\n"
            "D[] = (D.sum[], D.max[])\n");
}

TEST(WrittenText, ReductionsInsideOfExpressionsThatCannotBe) {
  EXPECT_THAT(PrintedOf("input A: float32[3]\nD[] = 1.0 + argmax(k: 3) (k, A[k])"),
              HasSubstr("line 2, column 13: argmax makes several tensors"));
  EXPECT_THAT(PrintedOf("input A: float32[3]\nD[i: 3] = 1.0 + sum(k: 3) A[k + i]"),
              HasSubstr("line 2, column 29: index k + i of A reaches 4"));
  EXPECT_THAT(PrintedOf("input A: float32[3]\nD[k: 3] = 1.0 + sum(k: 3) A[k]"),
              HasSubstr("two axes are called k"));
  EXPECT_THAT(PrintedOf("input A: float32[3]\nD[] = 1.0 + summe(k: 3) A[k]"),
              HasSubstr("unknown combiner 'summe'"));
}

TEST(WrittenText, ExtentsThatDependOnOtherAxes) {
  const std::string text =
      "input A: float32[5, 5]\ninput x: float32[5]\ny[i: 5] = sum(k: i + 1) A[i, k] * x[k]";
  EXPECT_EQ(PrintedOf(text),
            "input A: float32[5, 5]\n"
            "input x: float32[5]\n"
            "@flop(30.0)\n"
            "y[i: 5] = sum(k: 5) if(k < i + 1, A[i, k]*x[k], 0.0)\n");
  // There are 15 points with a product and a sum each.
  EXPECT_EQ((*ParseDag(text))->flop_count(), 30);
  EXPECT_EQ(Outputs(text), Outputs("input A: float32[5, 5]\ninput x: float32[5]\n"
                                   "y[i: 5] = sum(k: 5) select(k <= i, A[i, k], 0.0) * x[k]"));
  // Reductions over nothing give their initial value. Axes of reductions may bound each other.
  EXPECT_EQ(Outputs("input A: float32[4]\ny[i: 4] = max(k: 2*i - 3) A[k] * A[k]").front(),
            -INFINITY);
  EXPECT_EQ((*ParseDag("input A: float32[6, 6]\ny[] = sum(i: 6, j: 6 - i) A[i, j]"))->flop_count(),
            21);
  EXPECT_EQ(PrintedOf("input A: float32[6]\ny[i: 6] = 1.0 - sum(k: i + 1) A[k]"),
            "input A: float32[6]\n"
            "@flop(21.0)\n"
            "y.sum[i: 6] = sum(k: 6) if(k < i + 1, A[k], 0.0)\n"
            "y[i: 6] = 1.0 - y.sum[i]\n");
  EXPECT_THAT(PrintedOf("input A: float32[5]\ny[i: 5] = sum(k: i + 2) A[k]"),
              HasSubstr("index k of A reaches 5"));
  EXPECT_THAT(PrintedOf("input A: float32[5]\ny[i: 5] = sum(k: i * i) A[k]"),
              HasSubstr("line 2, column 18: expected an extent that is a sum of axes"));
  EXPECT_THAT(PrintedOf("input A: float32[5]\ny[i: 5] = sum(k: k + 1) A[k]"),
              HasSubstr("unknown variable 'k'"));
  EXPECT_THAT(PrintedOf("input A: float32[5]\ny[i: 5] = sum(k: i - 4) A[k]"),
              HasSubstr("an extent whose largest value is from 1"));
}

constexpr std::string_view kBest =
    "combine best(i: int64, x: float32; j, y) from (-1, -inf) =\n"
    "    (x > y || x == y && i < j ? i : j, max(x, y))\n";

TEST(WrittenText, Combiners) {
  const std::string text =
      std::string(kBest) + "input A: float32[4, 9]\nT[i: 4] = best(k: 9) (k, A[i, k])";
  EXPECT_EQ(PrintedOf(text),
            "input A: float32[4, 9]\n"
            "combine best(i: int64, x: float32; j, y) from (-1, -inf) = "
            "(if(x > y || x == y && i < j, i, j), max(x, y))\n"
            "T[i: 4] = best(k: 9) (k, A[i, k])\n");
  EXPECT_EQ(Outputs(text), Outputs("input A: float32[4, 9]\nT[i: 4] = argmax(k: 9) (k, A[i, k])"));
  EXPECT_EQ(PrintedOf("combine xor(a: uint32; b) from 0 = a ^ b\n"
                      "input A: uint32[9]\nT[] = xor(k: 9) A[k]\nU[] = ~xor(k: 9) A[k] + 1"),
            "input A: uint32[9]\n"
            "combine xor(a: uint32; b) from 0 = a ^ b\n"
            "T[] = xor(k: 9) A[k]\n"
            "U.xor[] = xor(k: 9) A[k] + 1\n"
            "U[] = ~U.xor[]\n");
}

TEST(WrittenText, CombinersOfOneNameAreToldApart) {
  const auto sum = [](std::string_view body) {
    return *ParseDag(
        fmt::format("combine c(a: int32; b) from 0 = {}\ninput A: int32[9]\n"
                    "T[] = c(k: 9) A[k]",
                    body));
  };
  const DagPtr a = sum("a + b"), b = sum("a ^ b");
  EXPECT_FALSE(Equal(*a, *b));
  EXPECT_NE(WorkloadKey(*a), WorkloadKey(*b));
  std::vector<OpNode> nodes = a->nodes();
  nodes.push_back({b->nodes().back().op, {{0, 0}}});
  ASSERT_OK_AND_ASSIGN(const DagPtr both, Dag::Make(std::move(nodes)));
  ExpectRoundTrip(*both);
  EXPECT_THAT(PrintDag(*both), HasSubstr("combine c'1("));
}

TEST(WrittenText, CombinersThatAreNone) {
  const auto error = [](std::string_view combiner) {
    return PrintedOf(fmt::format("combine {}\ninput A: float32[9]\nT[] = c(k: 9) A[k]", combiner));
  };
  EXPECT_THAT(error("c(a: float32; b) from 0 = a - b"),
              AllOf(HasSubstr("line 1, column 9"), HasSubstr("combine(identity, x)"),
                    HasSubstr("for x = ")));
  EXPECT_THAT(error("c(a: float32; b) from 1.0 = a + b"), HasSubstr("combine(identity, identity)"));
  EXPECT_THAT(error("c(a: float32; b) from 0 = a == 0 ? b : b == 0 ? a : (a + b) * 0.5"),
              HasSubstr("combine(combine(x, y), z)"));
  EXPECT_THAT(error("c(a: float32; b) from -inf = a == -inf ? b : b == -inf ? a : a"),
              HasSubstr("combine(y, x)"));
  EXPECT_THAT(error("c(a: float32; b) from 0.0 = max(a, b)"), HasSubstr("combine(identity, x)"));
  EXPECT_EQ(error("c(@range(0, 4) a: float32; b) from 0.0 = max(a, b)"),
            "input A: float32[9]\n"
            "combine c(@range(0.0, 4.0) a: float32; b) from 0.0 = max(a, b)\n"
            "T[] = c(k: 9) A[k]\n");
  EXPECT_THAT(error("c(a: float32; b) from 0 = a // b"), HasSubstr("need an integer constant"));
  EXPECT_THAT(error("c(a: float32; b) from 0 = a + A[0]"), HasSubstr("unknown tensor 'A'"));
  EXPECT_THAT(error("c(a: float32; b, d) from 0 = a + b"), HasSubstr("expected ')'"));
  EXPECT_THAT(error("c(a: float32; a) from 0 = a + a"), HasSubstr("two parameters are called a"));
  EXPECT_THAT(error("sum(a: float32; b) from 0 = a + b"), HasSubstr("word of the language"));
  EXPECT_THAT(error("c(a: int32; b) from 0 = a + b"), HasSubstr("part 0 of c is float32"));
  EXPECT_THAT(error("c(a: float32, n: int64; b, m) from (0, 0) = (a + b, n + m)"),
              HasSubstr("got 1 bodies, c combines 2"));
}

TEST(WrittenText, AnyAndAll) {
  EXPECT_EQ(PrintedOf("input A: float32[4, 9]\nT[i: 4] = any(k: 9) A[i, k] > 0.5"),
            "input A: float32[4, 9]\nT[i: 4] = any(k: 9) A[i, k] > 0.5\n");
  EXPECT_THAT(PrintedOf("input A: float32[9]\nT[] = all(k: 9) A[k]"),
              HasSubstr("all of float32, expected a bool"));
  EXPECT_THAT(PrintedOf("input A: bool[9]\nT[] = sum(k: 9) A[k]"), HasSubstr("sum of bool"));
}

TEST(WrittenText, Params) {
  constexpr std::string_view kText =
      "param n\nparam m\nparam k = 3\ninput A: float32[n, m * k]\n"
      "B[i: n, j: m * k] = A[i, j] + 1.0";
  EXPECT_THAT(PrintedOf(kText),
              HasSubstr("line 1, column 7: n, m have no value: give each with --let n=... --let "
                        "m=..."));
  const ParamValue values[] = {{"n", 4}, {"m", 5}};
  ASSERT_OK_AND_ASSIGN(DagText text, ParseDagText(kText, values));
  EXPECT_EQ(PrintDag(*text.dag), "input A: float32[4, 15]\nB[i: 4, j: 15] = A[i, j] + 1.0\n");
  const ParamValue more[] = {{"n", 4}, {"m", 5}, {"k", 1}};
  ASSERT_OK_AND_ASSIGN(text, ParseDagText(kText, more));
  EXPECT_EQ(text.dag->op(0).shape()[1], 5);
  const ParamValue other[] = {{"n", 4}, {"m", 5}, {"z", 1}};
  EXPECT_THAT(Message(ParseDagText(kText, other).status()),
              HasSubstr("no param z; it has n, m, k"));
  EXPECT_EQ(ParseParamValue("n=512")->value, 512);
  for (std::string_view bad : {"n", "=4", "n=", "n=4x", "n=99999999999999999999"})
    EXPECT_THAT(Message(ParseParamValue(bad).status()), HasSubstr("expected NAME=NUMBER")) << bad;
}

TEST(WrittenText, ShiftsStayInsideOfTheirType) {
  EXPECT_THAT(PrintedOf("input A: int16[4]\nB[i: 4] = A[i] << A[i]"),
              HasSubstr("clamp it with % 16"));
  EXPECT_EQ(PrintedOf("input A: int16[4]\nB[i: 4] = A[i] << A[i] % 16"),
            "input A: int16[4]\nB[i: 4] = A[i] << (A[i] % 16)\n");
}

TEST(Text, Argmax) {
  ASSERT_OK_AND_ASSIGN(DagPtr dag, ParseDag(R"(
input A: float16[5, 7]
M[i: 5] = argmax(k: 7) (int32(k), A[i, k])
first[i: 5] = M.index[i]
twice[i: 5] = M.value[i] + M.value[i]
)"));
  EXPECT_EQ(dag->op(1).num_outputs(), 2);
  EXPECT_EQ(dag->op(1).type(0), ir::kInt32);
  ExpectRoundTrip(*dag);
}

TEST(Text, SeveralOutputs) {
  ASSERT_OK_AND_ASSIGN(DagPtr dag, ParseDag(R"(
input A: float32[5, 7]
S[i: 5] = sum(k: 7) (A[i, k], A[i, k] * A[i, k], (A[i, k]) + max(A[i, k], 0.0))
T[i: 5] = (S.v0[i], int32(S.v1[i]))
U[i: 5] = (T.v0[i] + S.v2[i]) * 2.0
)"));
  EXPECT_EQ(dag->op(1).num_outputs(), 3);
  EXPECT_EQ(dag->op(2).num_outputs(), 2);
  EXPECT_EQ(dag->op(2).type(1), ir::kInt32);
  EXPECT_EQ(dag->op(3).num_outputs(), 1);
  ExpectRoundTrip(*dag);
}

TEST(Text, RefusesWrongNumbersOfOutputs) {
  const auto refusal = [](std::string_view body) {
    return Message(ParseDag(fmt::format("input A: float32[4]\nS[i: 4] = {}", body)).status());
  };
  EXPECT_THAT(refusal("(A[i], A[i]"), testing::HasSubstr("expected ')' after the last output"));
  EXPECT_THAT(refusal("argmax(k: 4) (A[k])"), testing::HasSubstr("expected ','"));
  EXPECT_THAT(refusal("(A[i], A[i], A[i], A[i], A[i], A[i], A[i], A[i], A[i])"),
              testing::HasSubstr("got 9 bodies, expected 1 to 8"));
  EXPECT_THAT(refusal("sum(k: 4) (A[k], A[k] > 0.0)"), testing::HasSubstr("sum of bool"));
}

TEST(Text, AttributesAndOddNames) {
  DagBuilder b;
  TensorRef a = b.Placeholder("A.shared", ir::kFloat32, {4});
  TensorRef same = b.Placeholder("A.shared", ir::kFloat32, {4});
  TensorRef quote = b.Placeholder("x'1", ir::kFloat32, {4});
  TensorRef keyword = b.Placeholder("input", ir::kFloat32, {4});
  TensorRef spaced = b.Placeholder("my tensor`\n\\", ir::kFloat32, {});
  TensorRef function = b.Placeholder("exp", ir::kFloat32, {4});
  Attrs attrs;
  attrs.simplify_const_tensor_indices = {"max", "j k"};
  attrs.always_unroll_inner = {"max"};
  attrs.no_split_at_inner = {"max"};
  attrs.layout_free_placeholders = {"A.shared", "exp"};
  attrs.packed_placeholders = {"exp"};
  attrs.task_scheduler_tag = "tag with spaces";
  attrs.hash_body = "(a + `b`)\n";
  attrs.flop = 1.5e9;
  attrs.const_matrix = true;
  TensorRef y = b.Compute(
      "exp", {{"max", 4}, {"j k", 1}},
      [&](Vars v) {
        return a(v[0]) + same(v[0]) + quote(v[0]) * spaced() - keyword(v[0]) + function(v[0]);
      },
      attrs);
  b.Compute("exp", {{"max", 4}}, [&](Vars v) { return y(v[0], 0) * 1e30; });
  ASSERT_OK_AND_ASSIGN(DagPtr dag, b.Build());
  ExpectRoundTrip(*dag);
  EXPECT_EQ(dag->flop_count(), 1.5e9 + 4);
}

TEST(Text, PartsOfArgmaxDoNotClashWithNames) {
  DagBuilder b;
  TensorRef a = b.Placeholder("M.index", ir::kFloat32, {4});
  TensorRef m = b.ReduceArg("M", {}, {{"k", 4}}, Combiner::kArgMin,
                            [&](Vars v) { return std::pair(Cast(ir::kInt32, v[0]), a(v[0])); });
  b.Compute("M.value", {}, [&](Vars) { return m(); });
  ASSERT_OK_AND_ASSIGN(DagPtr dag, b.Build());
  EXPECT_THAT(DisplayNames(*dag), ElementsAre("M.index", "M'1", "M.value"));
  ExpectRoundTrip(*dag);
}

TEST(Text, PartsOfSeveralOutputsDoNotClashWithNames) {
  DagBuilder b;
  TensorRef a = b.Placeholder("M.v1", ir::kFloat32, {4});
  TensorRef m = b.Tuple("M", {}, {{"k", 4}}, Combiner::kMax,
                        [&](Vars v) { return std::vector<Value>{a(v[0]), -a(v[0])}; });
  b.Compute("M.v0", {}, [&](Vars) { return m() + m.output(1)(); });
  ASSERT_OK_AND_ASSIGN(DagPtr dag, b.Build());
  EXPECT_THAT(DisplayNames(*dag), ElementsAre("M.v1", "M'1", "M.v0"));
  ExpectRoundTrip(*dag);
}

TEST(Text, RangesOfInputsAreOfTheTextAlone) {
  const std::string text =
      "@range(0.5, 2.0)\ninput x: float32[8]\n@range(-3, 4)\ninput k: int32[8]\n"
      "y[i: 8] = log(x[i])*float32(k[i])\n";
  ASSERT_OK_AND_ASSIGN(const DagText parsed, ParseDagText(text));
  EXPECT_THAT(parsed.ranges, ElementsAre(InputRange{"x", 0.5, 2}, InputRange{"k", -3, 4}));
  EXPECT_EQ(PrintDag(*parsed.dag, parsed.ranges), text);
  // The computation is the same as without the ranges.
  ASSERT_OK_AND_ASSIGN(const DagPtr plain, ParseDag("input x: float32[8]\ninput k: int32[8]\n"
                                                    "y[i: 8] = log(x[i]) * float32(k[i])\n"));
  EXPECT_EQ(PrintDag(*parsed.dag), PrintDag(*plain));
  ASSERT_OK_AND_ASSIGN(const DagPtr dag, ParseDag(text));
  EXPECT_EQ(WorkloadKey(*dag), WorkloadKey(*plain));
}

TEST(Text, RangeMayAscendInRuns) {
  const std::string text =
      "@range(0, 8, 2)\ninput ids: int32[16]\ninput t: float32[8]\ny[i: 16] = t[ids[i]]\n";
  ASSERT_OK_AND_ASSIGN(const DagText parsed, ParseDagText(text));
  EXPECT_THAT(parsed.ranges, ElementsAre(InputRange{"ids", 0, 8, 2}));
  EXPECT_EQ(PrintDag(*parsed.dag, parsed.ranges), text);
}

// The order of two inputs of one name decides which one is A'1, and the file has another order.
TEST(Text, RangeGoesWithItsInput) {
  ASSERT_OK_AND_ASSIGN(const DagText parsed,
                       ParseDagText("@range(1, 2) input A'1: float32[4]\ninput A: float32[5]\n"
                                    "B[i: 4] = A'1[i] + A[i]\n"));
  const std::string text = PrintDag(*parsed.dag, parsed.ranges);
  EXPECT_THAT(text, HasSubstr("@range(1.0, 2.0)\ninput A: float32[4]"));
  ASSERT_OK_AND_ASSIGN(const DagText again, ParseDagText(text));
  EXPECT_EQ(again.ranges, parsed.ranges);
}

TEST(Text, UnusualOrderIsKept) {
  ASSERT_OK_AND_ASSIGN(
      DagPtr dag,
      ParseDag("@keep_order\ninput B: int8[3]\ninput A: int8[3]\nC[i: 3] = A[i] + B[i]\n"));
  EXPECT_EQ(dag->op(0).name(), "B");
  ExpectRoundTrip(*dag);
  ASSERT_OK_AND_ASSIGN(DagPtr ordered,
                       ParseDag("input B: int8[3]\ninput A: int8[3]\nC[i: 3] = A[i] + B[i]\n"));
  EXPECT_EQ(ordered->op(0).name(), "A");
  ExpectRoundTrip(*ordered);
}

TEST(Text, ScalarsGathersAndGuards) {
  ASSERT_OK_AND_ASSIGN(DagPtr dag, ParseDag(R"(
input table: bfloat16[10, 4]
input ids: int64[6]
input scale: bfloat16[]
rows[i: 6, j: 4] = table[ids[i], j] * scale[]
padded[i: 8, j: 4] = if(i >= 1 && i < 7, rows[i - 1, j], bfloat16(0.0))
total[] = sum(i: 8, j: 4) float32(padded[i, j])
)"));
  ExpectRoundTrip(*dag);
}

TEST(Text, LayerNorm) {
  ASSERT_OK_AND_ASSIGN(DagPtr dag, ParseDag(R"(
let rows = 3
let width = 5
input x: float64[rows, width]
mean[i: rows] = sum(k: width) x[i, k] / 5
variance[i: rows] = sum(k: width) (x[i, k] - mean[i]) * (x[i, k] - mean[i]) / 5.0
y[i: rows, j: width] = (x[i, j] - mean[i]) * rsqrt(variance[i] + 1e-12)
)"));
  ExpectRoundTrip(*dag);
  const std::vector<ir::NDArray> inputs = RandomInputs(*dag, 17);
  ASSERT_OK_AND_ASSIGN(const auto y, Evaluate(*dag, inputs));
  for (int row = 0; row < 3; ++row) {
    double sum = 0, squares = 0;
    for (int j = 0; j < 5; ++j) {
      const double v = y[0].GetDouble(row * 5 + j);
      sum += v;
      squares += v * v;
    }
    EXPECT_NEAR(sum, 0, 1e-9);
    EXPECT_NEAR(squares, 5, 1e-6);
  }
}

void ExpectError(std::string_view text, const testing::Matcher<std::string>& message) {
  EXPECT_THAT(ParseDag(text), StatusIs(StatusCode::kInvalidArgument, message)) << text;
}

TEST(Text, ErrorsNameThePlace) {
  ExpectError(
      "input A: float32[512, 512]\nB[i: 512, j: 512] =\n  A[i, j] +\n     A[j, i] * A[i + 1, j]\n",
      "line 4, column 18: index i + 1 of A reaches 512, axis 0 has extent 512");
  const std::string rest = "input A: float32[4]\nC[i: 4] = A[i]\n";
  ExpectError("@range(2, 1)\n" + rest, HasSubstr("line 1, column 2: range [2, 1) of input A"));
  ExpectError("@range(1, 1e39)\n" + rest, HasSubstr("values of float32 lie between"));
  ExpectError("@range(1)\n" + rest, HasSubstr("line 1, column 9"));
  ExpectError("@range(1, 2, 2)\n" + rest, HasSubstr("cannot ascend in runs, only integers can"));
  ExpectError("@range(1, 2, 0)\n" + rest, HasSubstr("a whole number from 1 on"));
  ExpectError("@range(1, 2, 1.5)\n" + rest, HasSubstr("line 1, column 14"));
  ExpectError("@range(a, 2)\n" + rest, HasSubstr("expected a number"));
  ExpectError("@range(1, 2)\nlet n = 3\n" + rest, HasSubstr("'input' after @range(...)"));
  ExpectError("@range(0, 0.5) input A: int8[4]\nC[i: 4] = A[i]\n", HasSubstr("whole numbers"));
  ExpectError("@range(0, 2) input A: bool[4]\nC[i: 4] = A[i]\n", HasSubstr("a bool has no range"));
  ExpectError("@range(0, 9) input ids: int32[4]\ninput t: float32[8]\nC[i: 4] = t[ids[i]]\n",
              HasSubstr("range [0, 9) of input ids: its values are indices, which lie in [0, 8)"));
  ExpectError("input A: float32[4]\ninput A: float32[4]\n",
              "line 2, column 7: the name A is taken: it is defined in line 1");
  ExpectError("input A: float32[4]\nA[i: 4] = A[i]\n",
              HasSubstr("line 2, column 1: the name A is taken"));
  ExpectError("input A: float32[4]\ninput B: float32[4]\nC[i: 4] = A[i]\n",
              "line 2, column 7: input B is not used");
  ExpectError("input A: float32[4]\nC[i: 4] = D[i]\nD[i: 4] = A[i]\n",
              "line 2, column 11: D is read here but defined only in line 3: an operator comes "
              "after what it reads");
  ExpectError("C[i: 4] = C[i]\n", HasSubstr("line 1, column 11"));
  ExpectError("input A: float32[4]\nC[i: 4] = A[j]\n", HasSubstr("line 2, column 13"));
  ExpectError("input A: float32[4]\nC[i: 4] = X[i]\n", HasSubstr("line 2, column 11"));
  ExpectError("input A: float32[4]\nC[i: 4] = A[i, i]\n", HasSubstr("line 2"));
  ExpectError("input A: float32[4]\nC[i: 4, i: 4] = A[i]\n",
              "line 2, column 9: two axes are called i");
  ExpectError("input A: float32[4]\nC[i: 4] = sum(i: 4) A[i]\n",
              "line 2, column 15: two axes are called i");
  ExpectError("input A: float32[0]\n", HasSubstr("line 1, column 18: expected an extent from 1"));
  ExpectError("input A: float32[-4]\n", HasSubstr("found -4"));
  ExpectError("input A: float32[99999999999999999999]\n", HasSubstr("line 1, column 18"));
  ExpectError("input A: float32[1048576, 1048576, 2]\n",
              HasSubstr("line 1, column 7: A: its shape"));
  ExpectError("input A: float31[4]\n", HasSubstr("line 1, column 10: unknown type 'float31'"));
  ExpectError("input A float32[4]\n", HasSubstr("line 1, column 9: expected ':'"));
  ExpectError("input A: float32[4]\n", HasSubstr("there is no output"));
  ExpectError("", HasSubstr("there is no output"));
  ExpectError("# nothing\n", HasSubstr("there is no output"));
  ExpectError("@shiny\nC[i: 4] = 1.0\n", HasSubstr("line 1, column 2: unknown attribute 'shiny'"));
  ExpectError("input A: float32[4]\nC[] = sum(4) A[0]\n",
              HasSubstr("expected an axis like k: 256 to sum over"));
  ExpectError("input A: float32[4]\nC[i: 4] = A[i] +\n", HasSubstr("line 3"));
  ExpectError("input A: float32[4]\nC[i: 4] A[i]\n", HasSubstr("line 2, column 9: expected '='"));
  ExpectError("input A: float32[4]\nC[i: 4] = exp(A[i]) % 2.0\n", HasSubstr("line 2"));
  ExpectError("input A: float32[4]\ninput B: float16[4]\nC[i: 4] = A[i] + B[i]\n",
              HasSubstr("line 3"));
  ExpectError("let a = 1\nlet a = 2\n", "line 2, column 5: a is given a value twice");
  ExpectError("input A: float32[b]\n", HasSubstr("line 1, column 18"));
  ExpectError("\x80\xff", HasSubstr("line 1, column 1"));
  ExpectError("= 4", HasSubstr("line 1, column 1: expected 'input', 'let', 'param', 'combine' or "
                               "the name of an operator"));
}

// Any damaged file is parsed or refused.
TEST(Text, DamagedTextNeverCrashes) {
  const uint64_t seed = 20240607;
  std::mt19937_64 rng(seed);
  ASSERT_OK_AND_ASSIGN(DagPtr conv, BuildOp("conv2d_nchw", "1,7,7,4,4,3,3,1,1,groups=2",
                                            {.epilogue = {"bias", "gelu"}}));
  ASSERT_OK_AND_ASSIGN(DagPtr arg, BuildOp("argmax", "3,4"));
  const std::string texts[] = {PrintDag(*conv), PrintDag(*arg), std::string(kMatmul)};
  int parsed = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = texts[rng() % 3];
    for (uint64_t edits = 1 + rng() % 3; edits > 0; --edits) {
      const size_t at = rng() % text.size(), length = 1 + rng() % 4;
      switch (rng() % 4) {
        case 0:
          text.erase(at, length);
          break;
        case 1:
          text.insert(at, text.substr(rng() % text.size(), length));
          break;
        case 2:
          text[at] = "[](){},:=+-*/%<>&|!'`@#.0129ikAx \n\\"[rng() % 36];
          break;
        default:
          text[at] = static_cast<char>(rng());
          break;
      }
      if (text.empty()) text = " ";
    }
    StatusOr<DagPtr> dag = ParseDag(text);
    if (!dag.ok()) {
      EXPECT_FALSE(Message(dag.status()).empty());
      continue;
    }
    ++parsed;
    SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << i << "\n" << text);
    ExpectRoundTrip(**dag);
  }
  EXPECT_GT(parsed, 30);
}

TEST(Text, DeepAndLongTextIsFast) {
  const std::string open(100000, '('), zeros = "C[i: 4] = ";
  EXPECT_FALSE(ParseDag(zeros + open).ok());
  std::string sum = "input A: float32[4]\nC[i: 4] = A[i]";
  for (int i = 0; i < 900; ++i) sum += " + A[i//" + std::to_string(i + 1) + "]";
  EXPECT_OK(ParseDag(sum));
  std::string many = "input A0: float32[4]\n";
  for (int i = 1; i < 3000; ++i) many += fmt::format("A{}[i: 4] = A{}[i] + 1.0\n", i, i - 1);
  EXPECT_OK(ParseDag(many));
}

TEST(InputRangeTest, ReadsWhatPeopleWrite) {
  EXPECT_EQ(*ParseInputRange("x=0.5:2"), (InputRange{"x", 0.5, 2}));
  EXPECT_EQ(*ParseInputRange("ids=0:8:2"), (InputRange{"ids", 0, 8, 2}));
  EXPECT_EQ(*ParseInputRange("A.shared=-1e3:-2"), (InputRange{"A.shared", -1000, -2}));
  for (const char* bad : {"", "x", "=1:2", "x=1", "x=1:", "x=:2", "x=1:2:", "x=1:2:0", "x=1:2:1.5",
                          "x=1:inf", "x=nan:2"}) {
    EXPECT_THAT(ParseInputRange(bad),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected NAME=LOW:HIGH")))
        << bad;
  }
}

TEST(InputRangeTest, NamesAnInputOnce) {
  ASSERT_OK_AND_ASSIGN(DagPtr dag, ParseDag("input x: float32[4]\ny[i: 4] = log(x[i])\n"));
  EXPECT_THAT(CheckInputRanges(*dag, std::vector<InputRange>{{"y", 1, 2}}),
              StatusIs(StatusCode::kNotFound, HasSubstr("no input y, expected one of: x")));
  EXPECT_THAT(CheckInputRanges(*dag, std::vector<InputRange>{{"x", 1, 2}, {"x", 1, 2}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("two ranges")));
  EXPECT_OK(CheckInputRanges(*dag, std::vector<InputRange>{{"x", 1, 2}}));
}

}  // namespace
}  // namespace kiln::dag
