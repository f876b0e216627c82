// Programs for TVM as text. tests/tvm/roundtrip.py runs such programs in TVM.
#include "compiler/schedule/tvm/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

StatusOr<std::string> Program(const dag::DagPtr& dag, std::string_view steps) {
  StatusOr<std::vector<StepPtr>> parsed = ParseSteps(steps);
  KILN_CHECK(parsed.ok(), "{}", Message(parsed.status()));
  StatusOr<State> state = Replay(dag, *parsed);
  KILN_CHECK(state.ok(), "{}", Message(state.status()));
  return TvmProgram(*state, "llvm -mcpu=x86-64-v3");
}

TEST(TvmProgram, SaysComputationAndSchedule) {
  ASSERT_OK_AND_ASSIGN(
      const std::string program,
      Program(
          MatmulRelu(64, 48, 32),
          R"([["CHW", 2, "local"], ["SP", 2, 0, 64, [4, 2], 1], ["SP", 3, 1, 48, [2, 3], 0], )"
          R"(["FSP", 4, 0, 1, 1], ["RE", 2, [0, 3, 1, 4, 2]], ["CA", 2, 3, 0], ["CHR", 0, "shared", [2]], )"
          R"(["FU", 5, [0, 1]], ["AN", 5, 0, 3], ["PR", 4, 0, "auto_unroll_max_step$16"]])"));
  EXPECT_THAT(program, HasSubstr(R"(
    A = te.placeholder((64, 32), name="A", dtype="float32")
    B = te.placeholder((32, 48), name="B", dtype="float32")
    k = te.reduce_axis((0, 32), name="k")
    C = te.compute((64, 48), lambda i, j: te.sum(A[i, k] * B[k, j], axis=[k]), name="C")
    D = te.compute((64, 48), lambda i, j: te.max(C[i, j], tir.const(0.0, "float32")), name="D")
    s = te.create_schedule([D.op])
    C_i, C_j, C_k, = list(s[C].op.axis) + list(s[C].op.reduce_axis)
    D_i, D_j, = list(s[D].op.axis)
    C_local = s.cache_write(C, "local")
    C_local_i, C_local_j, C_local_k, = list(s[C_local].op.axis) + list(s[C_local].op.reduce_axis)
    C_i, C_j, = list(s[C].op.axis)
    C_local_i_0, C_local_i_2 = s[C_local].split(C_local_i, factor=2)
    C_local_i_0, C_local_i_1 = s[C_local].split(C_local_i_0, factor=4)
    C_j_0, C_j_2 = s[C].split(C_j, nparts=2)
    C_j_1, C_j_2 = s[C].split(C_j_2, nparts=3)
    D_i_0, D_i_1 = s[D].split(D_i, factor=8)
    s[C_local].reorder(C_local_i_0, C_local_j, C_local_i_1, C_local_k, C_local_i_2)
    s[C_local].compute_at(s[C], C_i)
    A_shared = s.cache_read(A, "shared", [C_local])
    A_shared_ax0, A_shared_ax1, = list(s[A_shared].op.axis)
    D_i_0_i_1 = s[D].fuse(D_i_0, D_i_1)
    s[D].parallel(D_i_0_i_1)
    s[C].pragma(C_i, "auto_unroll_max_step", 16)
    s[C].pragma(C_i, "unroll_explicit", True)
    return s, [A, B, D]
)"));
  EXPECT_THAT(program,
              AllOf(HasSubstr("TARGET = tvm.target.Target(\"llvm -mcpu=x86-64-v3\")\n"),
                    HasSubstr("    C = values([\"float32\"], lambda i, j, k: A[i, k] * B[k, j], "
                              "(64, 48), (32,), \"sum\")\n"),
                    HasSubstr("    D = values([\"float32\"], lambda i, j: np.maximum(C[i, j], "
                              "np.float32(0.0)), (64, 48))\n"),
                    Not(HasSubstr("def reducer"))));
}

// Conditions, casts, guarded loads, indices, and names that Python has.
TEST(TvmProgram, ExpressionsOfTeAndNumpy) {
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(R"(input np: float32[8]
input at: int32[4]
pad[i: 10] = if(i >= 1 && i < 9, np[i - 1], 0.0)
x[te: 4] = select(at[te] == int32(3) || !(te < 2), pad[te*2 + 1], float32(te // 2 % 3)) / 2.0
y[te: 4] = exp(x[te] - (x[te] + 1.0)) * rsqrt(round(x[te]))
)"));
  ASSERT_OK_AND_ASSIGN(const std::string program, Program(dag, "[]"));
  EXPECT_THAT(
      program,
      AllOf(HasSubstr("    np_1 = te.placeholder((8,), name=\"np\", dtype=\"float32\")\n"),
            HasSubstr("lambda i: tir.if_then_else(tir.all(i >= 1, i < 9), np_1[i - 1], "
                      "tir.const(0.0, \"float32\")), name=\"pad\")"),
            HasSubstr("tir.any(tir.EQ(at_1[te_], tir.const(3, \"int32\")), "),
            HasSubstr("tir.Cast(\"float32\", te_ // 2 % 3)) / tir.const(2.0, \"float32\")"),
            HasSubstr("pad[te_ * 2 + 1]"),
            HasSubstr("np.where(np.logical_and(i >= 1, i < 9), at(np_1, i - 1), np.float32(0.0))"),
            HasSubstr("np.asarray(te_ // 2 % 3).astype(\"float32\")"),
            HasSubstr("te.exp(x[te_] - (x[te_] + tir.const(1.0, \"float32\"))) * "
                      "te.rsqrt(tir.nearbyint(x[te_]))"),
            HasSubstr("generator.uniform(0.1, 1, (8,))")));
}

TEST(TvmProgram, ReductionsThatTeHasNoWordFor) {
  ASSERT_OK_AND_ASSIGN(const std::string argmax, Program(ArgMaxRows(4, 6), "[]"));
  EXPECT_THAT(argmax, AllOf(HasSubstr("def reducer(how):"), HasSubstr("reducer(\"argmax\")(("),
                            HasSubstr("s = te.create_schedule([S[0].op])"),
                            HasSubstr("S_i, S_k, = list(s[S[0]].op.axis) + "),
                            HasSubstr("return s, [A, S[0], S[1]]")));
  ASSERT_OK_AND_ASSIGN(const std::string sums,
                       Program(TwoSums(3, 8), R"([["SP", 1, 1, 8, [2], 1], ["RF", 1, 2, 1]])"));
  EXPECT_THAT(sums, AllOf(HasSubstr("S_rf = s.rfactor(S[0], S_k_1, 1)"),
                          HasSubstr("= list(s[S_rf[0]].op.axis)")));
  ASSERT_OK_AND_ASSIGN(const std::string product,
                       Program(ReduceAll(dag::Combiner::kProd, 4, 8), "[]"));
  EXPECT_THAT(product, AllOf(HasSubstr("S = te.compute((), lambda: reducer(\"prod\")(A[i, j], "
                                       "axis=[i, j]), name=\"S\")"),
                             HasSubstr("lambda i, j: A[i, j], (), (4, 8), \"prod\")")));
}

StatusOr<std::string> ProgramOfText(std::string_view text, std::string_view steps) {
  StatusOr<dag::DagPtr> dag = dag::ParseDag(text);
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return Program(*dag, steps);
}

// The parts of a complex product need each other's old values. TVM updates one after the other, so
// its operator has a copy of one.
constexpr char kComplexProduct[] =
    R"(combine times(ar: float32, ai: float32; br, bi) from (1.0, 0.0) =
    (ar*br - ai*bi, ar*bi + ai*br)
input re: float32[16, 24]
input im: float32[16, 24]
P[i: 16] = times(k: 24) (re[i, k], im[i, k])
)";

TEST(TvmProgram, CopiesWhatPartsOfAWrittenCombinerNeedOfEachOther) {
  ASSERT_OK_AND_ASSIGN(const std::string program,
                       ProgramOfText(kComplexProduct, R"([["SP", 2, 1, 24, [4], 1]])"));
  EXPECT_THAT(program, HasSubstr(R"(
def te_times(left, right):
    (ar, ar_before, ai), (_, br, bi) = left, right
    return (ar_before, ar * br - ai * bi, ar * bi + ai * br)


def np_times(left, right):
    (ar, ai), (br, bi) = left, right
    return (ar * br - ai * bi, ar * bi + ai * br)


COMBINERS = {
    "times": (te_times, lambda *types: (tir.const(1.0, "float32"), tir.const(1.0, "float32"), tir.const(0.0, "float32")), np_times),
}


def reducer(how):
    """How values of the reduction axes are combined: of an operator with several outputs a tuple."""
    if how in COMBINERS:
        combine, identity, _ = COMBINERS[how]
        return te.comm_reducer(combine, identity, name=how)
    if how in ("argmax", "argmin"):
)"));
  EXPECT_THAT(program, HasSubstr(R"(
    P = te.compute((16,), lambda i: reducer("times")((re[i, k], re[i, k], im[i, k]), axis=[k]), name="P")
    s = te.create_schedule([P[1].op])
    P_i, P_k, = list(s[P[0]].op.axis) + list(s[P[0]].op.reduce_axis)
    P_k_0, P_k_1 = s[P[0]].split(P_k, factor=4)
    return s, [re, im, P[1], P[2]]
)"));
  EXPECT_THAT(
      program,
      AllOf(
          HasSubstr("    if how in COMBINERS:\n        while parts[0].shape[-1] > 1:"),
          HasSubstr("    P = values([\"float32\", \"float32\"], lambda i, k: (re[i, k], im[i, k]), "
                    "(16,), (24,), \"times\")\n    return [P[0], P[1]]\n")));
}

// Threads would combine the copies as well.
TEST(TvmProgram, RefusesCopiesBetweenThreads) {
  EXPECT_THAT(ProgramOfText(kComplexProduct, R"([["AN", 2, 1, 6]])").status(),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("expected a schedule that reduces within a thread")));
}

// If parts need others in one direction only, the needed parts are updated last.
TEST(TvmProgram, OrdersThePartsOfAWrittenCombiner) {
  constexpr char kText[] =
      R"(combine online(m: float32, @range(0, 4) s: float32; m2, s2) from (-1e30, 0.0) =
    (max(m, m2), s * exp(m - max(m, m2)) + s2 * exp(m2 - max(m, m2)))
input x: float32[16, 100]
L[i: 16] = online(k: 100) (x[i, k], 1.0)
y[i: 16, j: 100] = exp(x[i, j] - L.v0[i]) / L.v1[i]
)";
  ASSERT_OK_AND_ASSIGN(const std::string program, ProgramOfText(kText, "[]"));
  EXPECT_THAT(
      program,
      AllOf(HasSubstr("    (s_, m), (s2, m2) = left, right\n"), HasSubstr("axis=[k]), name=\"L\")"),
            HasSubstr("reducer(\"online\")((tir.const(1.0, \"float32\"), x[i, k])"),
            HasSubstr("te.exp(x[i, j] - L[1][i]) / L[0][i]"),
            HasSubstr("np.exp(x[i, j] - L[0][i]) / L[1][i]")));
  EXPECT_OK(ProgramOfText(kText, R"([["AN", 1, 1, 6]])").status());
}

TEST(TvmProgram, WrittenCombinersOfOnePartAndOfIndices) {
  ASSERT_OK_AND_ASSIGN(const std::string product,
                       ProgramOfText("combine times(left: float32; b) from 1.0 = left * b\n"
                                     "input A: float32[8, 4]\n"
                                     "P[i: 8] = times(k: 4) A[i, k]\n",
                                     "[]"));
  EXPECT_THAT(product,
              AllOf(HasSubstr("    left_, b = left, right\n    return left_ * b\n"),
                    HasSubstr("    (left_,), (b,) = left, right\n    return (left_ * b,)\n"),
                    HasSubstr("lambda *types: tir.const(1.0, \"float32\"), np_times"),
                    HasSubstr("reducer(\"times\")(A[i, k], axis=[k])")));
  ASSERT_OK_AND_ASSIGN(const std::string best,
                       ProgramOfText("combine best(i: int64, x: float32; j, y) from (-1, -inf) =\n"
                                     "    (x > y || x == y && i < j ? i : j, max(x, y))\n"
                                     "input A: float32[24, 100]\n"
                                     "T[r: 24] = best(k: 100) (k, A[r, k])\n",
                                     "[]"));
  EXPECT_THAT(
      best, AllOf(HasSubstr("    return (tir.if_then_else(tir.any(x > y, tir.all(tir.EQ(x, y), i "
                            "< j)), i, j), te.max(x, y))\n"),
                  HasSubstr("(tir.const(-1, \"int64\"), tir.const(float(\"-inf\"), \"float32\"))"),
                  HasSubstr("reducer(\"best\")((tir.Cast(\"int64\", k), A[r, k]), axis=[k])"),
                  HasSubstr("(np.where(np.logical_or(x > y, np.logical_and(x == y, i < j)), i, j), "
                            "np.maximum(x, y))")));
}

TEST(TvmProgram, NamesTheStepThatTvmLacks) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([["CR", 2], ["LA", 2, [1, 0]]])",
       R"(TVM has no such step: layout #1 ["LA", 2, [1, 0]] of stage 2 (C))"},
      {R"([["BF", 2, 2]])", "buffering #0"},
      {R"([["AN", 2, 0, 12]])", "annotate #0 [\"AN\", 2, 0, 12]"},
      {R"([["AN", 2, 0, 11]])", "expected a schedule without tensorize"},
      {R"([["PR", 2, 0, "min_blocks$2"]])", "pragma #0"},
      {R"([["SP", 2, 0, 8, [0], 1]])", "a split has a blank length"},
  };
  for (const auto& [steps, message] : cases) {
    EXPECT_THAT(Program(MatmulRelu(8, 8, 8), steps).status(),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)))
        << steps;
  }
  EXPECT_THAT(ProgramOfText("input A: float32[4, 8]\n"
                            "P[i: 4, j: 8] = (A[i, j] + 2.0, A[i, j] * 3.0)\n"
                            "S[i: 4] = sum(k: 8) (P.v0[i, k], P.v1[i, k])\n",
                            R"([["CI", 1]])")
                  .status(),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("without an operator of several outputs that is inlined")));
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag,
                       dag::ParseDag("input A: bfloat16[8]\nB[i: 8] = A[i] + A[i]\n"));
  EXPECT_THAT(Program(dag, "[]").status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("A is of bfloat16")));
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr narrow,
                       dag::ParseDag("input A: float8_e5m2[8]\nB[i: 8] = float32(A[i])\n"));
  EXPECT_THAT(Program(narrow, "[]").status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("A is of float8_e5m2")));
}

}  // namespace
}  // namespace kiln::schedule
