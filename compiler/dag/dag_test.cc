#include "compiler/dag/dag.h"

#include "base/status_testing.h"
#include "compiler/dag/builder.h"
#include "compiler/dag/text.h"

namespace kiln::dag {
namespace {

using ir::kFloat32;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Names(const Dag& dag) {
  std::vector<std::string> names;
  for (const OpNode& node : dag.nodes()) names.push_back(node.op->name());
  return names;
}

TEST(DagBuilder, MatmulAndRelu) {
  DagBuilder b;
  TensorRef A = b.Placeholder("A", kFloat32, {8, 6});
  TensorRef B = b.Placeholder("B", kFloat32, {6, 4});
  TensorRef C = b.Reduce("C", {{"i", 8}, {"j", 4}}, {{"k", 6}}, Combiner::kSum,
                         [&](Vars v) { return A(v[0], v[2]) * B(v[2], v[1]); });
  b.Compute("D", {{"i", 8}, {"j", 4}}, [&](Vars v) { return Max(C(v[0], v[1]), 0); });
  ASSERT_OK_AND_ASSIGN(DagPtr dag, b.Build());
  EXPECT_THAT(Names(*dag), ElementsAre("A", "B", "C", "D"));
  EXPECT_EQ(dag->flop_count(), 2 * 8 * 4 * 6 + 8 * 4);
  EXPECT_THAT(dag->consumers(0), ElementsAre(2));
  EXPECT_THAT(dag->producers(2), ElementsAre(0, 1));
  EXPECT_TRUE(dag->is_output(3));
  EXPECT_EQ(dag->arguments().size(), 3u);
  EXPECT_EQ(dag->arguments()[2], (Tensor{3, 0}));
  EXPECT_EQ(dag->op(2).reduce_size(), 6);
  EXPECT_EQ(dag->op(2).properties().reads.size(), 2u);
}

TEST(DagBuilder, OrderFollowsFirstUseNotWriting) {
  DagBuilder b;
  TensorRef bias = b.Placeholder("bias", kFloat32, {4});
  TensorRef A = b.Placeholder("A", kFloat32, {4});
  TensorRef E = b.Compute("E", {{"i", 4}}, [&](Vars v) { return Exp(A(v[0])); });
  b.Compute("S", {{"i", 4}}, [&](Vars v) { return E(v[0]) + bias(v[0]) * E(v[0]); });
  ASSERT_OK_AND_ASSIGN(DagPtr dag, b.Build());
  EXPECT_THAT(Names(*dag), ElementsAre("A", "E", "bias", "S"));
  EXPECT_TRUE(dag->op(1).properties().has_expensive);
  EXPECT_FALSE(dag->op(3).properties().has_expensive);
}

TEST(DagBuilder, JoinsAValueAndFunctionsOfIt) {
  DagBuilder b;
  const std::vector<Axis> axes = {{"i", 4}, {"j", 6}};
  TensorRef A = b.Placeholder("A", kFloat32, {4, 6});
  TensorRef B = b.Placeholder("B", kFloat32, {4, 6});
  TensorRef scale = b.Placeholder("scale", kFloat32, {1, 6});
  TensorRef X = b.Compute("X", axes, [&](Vars v) { return A(v[0], v[1]) + B(v[0], v[1]); });
  TensorRef Y = b.Compute("Y", axes, [&](Vars v) { return X(v[0], v[1]) * scale(0, v[1]); });
  TensorRef Z = b.Compute("Z", axes, [&](Vars v) { return Max(Y(v[0], v[1]), 0); });
  const TensorRef joined = b.Join(std::vector{X, Z});
  ASSERT_OK_AND_ASSIGN(DagPtr dag, b.Build(std::vector{joined.output(0), joined.output(1)}));
  EXPECT_EQ(PrintDag(*dag), R"(input A: float32[4, 6]
input B: float32[4, 6]
input scale: float32[1, 6]
Z[i: 4, j: 6] = (A[i, j] + B[i, j], max((A[i, j] + B[i, j])*scale[0, j], 0.0))
)");
}

TEST(DagBuilder, JoinsWhatReadsAReduction) {
  DagBuilder b;
  TensorRef A = b.Placeholder("A", kFloat32, {4, 6});
  TensorRef S =
      b.Reduce("S", {{"i", 4}}, {{"k", 6}}, Combiner::kSum, [&](Vars v) { return A(v[0], v[1]); });
  TensorRef R = b.Compute("R", {{"i", 4}}, [&](Vars v) { return Max(S(v[0]), 0); });
  const TensorRef joined = b.Join(std::vector{S, R});
  ASSERT_OK_AND_ASSIGN(DagPtr dag, b.Build(std::vector{joined}));
  EXPECT_EQ(PrintDag(*dag), R"(input A: float32[4, 6]
S[i: 4] = sum(k: 6) A[i, k]
R[i: 4] = (S[i], max(S[i], 0.0))
)");
}

TEST(DagBuilder, JoinsNothingOfAnotherShape) {
  DagBuilder b;
  TensorRef A = b.Placeholder("A", kFloat32, {4, 6});
  TensorRef X = b.Compute("X", {{"i", 4}, {"j", 6}}, [&](Vars v) { return -A(v[0], v[1]); });
  TensorRef Y = b.Compute("Y", {{"i", 4}}, [&](Vars v) { return -X(v[0], 0); });
  EXPECT_EQ(b.Join(std::vector{X, Y}).output(1).shape(), Y.shape());
  EXPECT_THAT(b.Build(), StatusIs(StatusCode::kInvalidArgument,
                                  HasSubstr("X has shape [4, 6], Y has [4]: they can't be outputs "
                                            "of one operator")));
}

TEST(DagBuilder, ArgmaxHasTwoOutputs) {
  DagBuilder b;
  TensorRef A = b.Placeholder("A", kFloat32, {5, 7});
  TensorRef M = b.ReduceArg("M", {{"i", 5}}, {{"k", 7}}, Combiner::kArgMax, [&](Vars v) {
    return std::pair(Cast(ir::kInt32, v[1]), A(v[0], v[1]));
  });
  b.Compute("picked", {{"i", 5}}, [&](Vars v) { return M.output(1)(v[0]) * 2.0; });
  ASSERT_OK_AND_ASSIGN(DagPtr dag, b.Build());
  EXPECT_EQ(dag->op(1).num_outputs(), 2);
  EXPECT_EQ(dag->op(1).type(0), ir::kInt32);
  EXPECT_EQ(dag->node(2).inputs[0], (Tensor{1, 1}));
}

TEST(DagBuilder, PaddingGuardsItsLoad) {
  DagBuilder b;
  TensorRef A = b.Placeholder("A", kFloat32, {14});
  b.Compute("pad", {{"i", 16}},
            [&](Vars v) { return If(v[0] >= 1 && v[0] < 15, A(v[0] - 1), 0.0); });
  EXPECT_OK(b.Build());
}

TEST(DagBuilder, SelectDoesNotGuard) {
  DagBuilder b;
  TensorRef A = b.Placeholder("A", kFloat32, {14});
  b.Compute("pad", {{"i", 16}},
            [&](Vars v) { return Select(v[0] >= 1 && v[0] < 15, A(v[0] - 1), 0.0); });
  EXPECT_THAT(b.Build(), StatusIs(StatusCode::kInvalidArgument,
                                  HasSubstr("reaches -1, axis 0 has extent 14")));
}

TEST(DagBuilder, FirstErrorWins) {
  DagBuilder b;
  TensorRef A = b.Placeholder("A", kFloat32, {4});
  TensorRef X = b.Compute("X", {{"i", 4}}, [&](Vars v) { return A(v[0] + 1); });
  b.Compute("Y", {{"i", 4}}, [&](Vars v) { return X(v[0], v[0]); });
  EXPECT_THAT(b.Build(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("X: index of input 0 reaches 4")));
}

TEST(DagBuilder, MixedTypesAreRefused) {
  DagBuilder b;
  TensorRef A = b.Placeholder("A", kFloat32, {4});
  TensorRef B = b.Placeholder("B", ir::kFloat16, {4});
  b.Compute("X", {{"i", 4}}, [&](Vars v) { return A(v[0]) + B(v[0]); });
  EXPECT_THAT(b.Build(), StatusIs(StatusCode::kInvalidArgument, HasSubstr("float32 and float16")));
}

TEST(Operator, RefusesBadShapes) {
  EXPECT_THAT(
      Operator::Placeholder("A", kFloat32, {4, 0}),
      StatusIs(StatusCode::kInvalidArgument, HasSubstr("axis 1 of its shape has extent 0")));
  EXPECT_THAT(Operator::Placeholder("A", kFloat32, {4, -3}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("-3")));
  EXPECT_THAT(Operator::Placeholder("A", kFloat32, {1 << 20, 1 << 20, 2}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("more than 2^40 elements")));
  EXPECT_THAT(Operator::Placeholder("A", kFloat32, {INT64_MAX, INT64_MAX, INT64_MAX}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("more than 2^40 elements")));
  EXPECT_OK(Operator::Placeholder("A", kFloat32, {}));
}

TEST(Operator, RefusesDuplicateAxes) {
  DagBuilder b;
  TensorRef A = b.Placeholder("A", kFloat32, {4});
  b.Reduce("X", {{"i", 4}}, {{"i", 4}}, Combiner::kSum, [&](Vars v) { return A(v[0]); });
  EXPECT_THAT(b.Build(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("two axes are called i")));
}

TEST(Operator, RefusesReductionWithoutAxes) {
  DagBuilder b;
  TensorRef A = b.Placeholder("A", kFloat32, {4});
  b.Reduce("X", {{"i", 4}}, {}, Combiner::kSum, [&](Vars v) { return A(v[0]); });
  EXPECT_THAT(b.Build(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("at least one reduce axis")));
}

TEST(Dag, RefusesUnusedInput) {
  DagBuilder b;
  TensorRef A = b.Placeholder("A", kFloat32, {4});
  b.Placeholder("B", kFloat32, {4});
  b.Compute("X", {{"i", 4}}, [&](Vars v) { return A(v[0]); });
  EXPECT_THAT(b.Build(), StatusIs(StatusCode::kInvalidArgument, HasSubstr("input B is not used")));
}

TEST(Dag, RefusesNothingToCompute) {
  EXPECT_THAT(Dag::Make({}), StatusIs(StatusCode::kInvalidArgument, HasSubstr("no output")));
}

TEST(Dag, RefusesInputsThatDoNotFit) {
  DagBuilder b;
  TensorRef A = b.Placeholder("A", kFloat32, {4});
  b.Compute("X", {{"i", 4}}, [&](Vars v) { return A(v[0]); });
  ASSERT_OK_AND_ASSIGN(DagPtr dag, b.Build());
  const OperatorPtr x = dag->node(1).op;
  ASSERT_OK_AND_ASSIGN(OperatorPtr shorter, Operator::Placeholder("A", kFloat32, {3}));
  ASSERT_OK_AND_ASSIGN(OperatorPtr ints, Operator::Placeholder("A", ir::kInt32, {4}));
  EXPECT_THAT(Dag::Make({{shorter, {}}, {x, {{0, 0}}}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("shape [4]")));
  EXPECT_THAT(Dag::Make({{ints, {}}, {x, {{0, 0}}}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("as float32")));
  EXPECT_THAT(Dag::Make({{x, {{1, 0}}}, {dag->node(0).op, {}}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected one before it")));
  EXPECT_THAT(Dag::MakeOrdered({{x, {{1, 0}}}, {x, {{0, 0}}}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("depends on itself")));
  EXPECT_THAT(Dag::Make({{dag->node(0).op, {}}, {x, {}}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("has 1 inputs, got 0")));
  ASSERT_OK_AND_ASSIGN(DagPtr reordered, Dag::MakeOrdered({{x, {{1, 0}}}, {dag->node(0).op, {}}}));
  EXPECT_TRUE(Equal(*reordered, *dag));
}

TEST(Combine, IdentityIsNeutral) {
  ir::ExprPool pool;
  const ir::Expr value[] = {pool.Int(3, ir::kInt32)};
  for (Combiner c : {Combiner::kSum, Combiner::kProd, Combiner::kMax, Combiner::kMin}) {
    const ir::Expr identity[] = {ReduceIdentity(c, 0, ir::kInt32, pool)};
    EXPECT_EQ(Combine(c, identity, value, pool)[0], value[0]) << CombinerName(c);
  }
}

TEST(Combine, ArgTakesTheSmallerIndexOfEqualValues) {
  ir::ExprPool pool;
  for (Combiner c : {Combiner::kArgMax, Combiner::kArgMin}) {
    const ir::Expr identity[] = {ReduceIdentity(c, 0, ir::kInt32, pool),
                                 ReduceIdentity(c, 1, ir::kInt32, pool)};
    const ir::Expr at2[] = {pool.Int(2, ir::kInt32), pool.Int(7, ir::kInt32)};
    const ir::Expr at5[] = {pool.Int(5, ir::kInt32), pool.Int(7, ir::kInt32)};
    EXPECT_THAT(Combine(c, identity, at2, pool), ElementsAre(at2[0], at2[1]));
    EXPECT_THAT(Combine(c, at2, identity, pool), ElementsAre(at2[0], at2[1]));
    EXPECT_THAT(Combine(c, at5, at2, pool), ElementsAre(at2[0], at2[1]));
    EXPECT_THAT(Combine(c, at2, at5, pool), ElementsAre(at2[0], at2[1]));
  }
}

}  // namespace
}  // namespace kiln::dag
