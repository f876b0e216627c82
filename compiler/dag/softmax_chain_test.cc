#include "compiler/dag/softmax_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/status_testing.h"
#include "compiler/arith/linear.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"

namespace kiln::dag {
namespace {

using testing::HasSubstr;

// Attention as a person writes it, with parts to be replaced.
struct Text {
  std::string logit = "S[b, i, j]*0.5";
  std::string weight = "float16(P[b, i, n])";
  std::string output = "out[b: 2, i: 6, d: 3] = O[b, i, d]/L[b, i]";

  std::string Get() const {
    return fmt::format(R"(
input Q: float16[2, 6, 4]
input K: float16[2, 5, 4]
input V: float16[2, 5, 3]
S[b: 2, i: 6, j: 5] = sum(k: 4) float32(Q[b, i, k])*float32(K[b, j, k])
X[b: 2, i: 6, j: 5] = {}
M[b: 2, i: 6] = max(j: 5) X[b, i, j]
P[b: 2, i: 6, j: 5] = exp(X[b, i, j] - M[b, i])
L[b: 2, i: 6] = sum(j: 5) P[b, i, j]
O[b: 2, i: 6, d: 3] = sum(n: 5) float32({})*float32(V[b, n, d])
{}
)",
                       logit, weight, output);
  }
};

StatusOr<SoftmaxChain> Find(const std::string& text) {
  KILN_ASSIGN_OR_RETURN(const DagPtr dag, ParseDag(text));
  return FindSoftmaxChain(*dag);
}

TEST(SoftmaxChain, FindsTheOperator) {
  for (const ir::Type type : {ir::kFloat16, ir::kBFloat16, ir::kFloat32}) {
    for (const bool causal : {false, true}) {
      ASSERT_OK_AND_ASSIGN(
          const DagPtr dag,
          BuildOp("attention", fmt::format("2,6,4,causal={:d},keys=5,values=3,mask=1", causal),
                  {.dtype = type, .epilogue = {"relu"}}));
      ASSERT_OK_AND_ASSIGN(const SoftmaxChain chain, FindSoftmaxChain(*dag));
      EXPECT_EQ(dag->op(chain.scores).name(), "attention_scores");
      EXPECT_EQ(dag->op(chain.maximum).name(), "attention_max");
      EXPECT_EQ(dag->op(chain.total).name(), "attention_expsum");
      EXPECT_EQ(dag->op(chain.weighted).name(), "attention_values");
      EXPECT_EQ(dag->op(chain.query->id).name(), "p0");
      EXPECT_EQ(dag->op(chain.keys->id).name(), "p1");
      EXPECT_EQ(dag->op(chain.values->id).name(), "p3");
      EXPECT_EQ(chain.output, dag->size() - 1);
      EXPECT_EQ(chain.batch, std::vector<int32_t>{0});
      EXPECT_EQ(chain.row, 1);
      EXPECT_EQ(chain.column, 2);
      EXPECT_EQ(chain.extent(chain.key), 5);
      EXPECT_EQ(chain.extent(chain.depth), 4);
      EXPECT_EQ(chain.weight->type, type);
      EXPECT_EQ(chain.last_key, causal ? std::optional<int64_t>(0) : std::nullopt);
    }
  }
}

TEST(SoftmaxChain, GoesByWhatIsComputed) {
  EXPECT_OK(Find(Text().Get()).status());
  // Weights that are not rounded, and logits of several stages.
  EXPECT_OK(Find(Text{.weight = "P[b, i, n]"}.Get()).status());
  ASSERT_OK_AND_ASSIGN(const SoftmaxChain masked,
                       Find(Text{.logit = "if(j > i + 2, -inf, S[b, i, j]*0.5)"}.Get()));
  EXPECT_EQ(masked.last_key, 2);
  ASSERT_OK_AND_ASSIGN(const SoftmaxChain before,
                       Find(Text{.logit = "select(j < i, S[b, i, j], -1e+30)"}.Get()));
  EXPECT_EQ(before.last_key, std::nullopt) << "the first row sees no key";
  // The masked keys are not the last ones.
  ASSERT_OK_AND_ASSIGN(const SoftmaxChain window,
                       Find(Text{.logit = "select(j >= i, S[b, i, j], -inf)"}.Get()));
  EXPECT_EQ(window.last_key, std::nullopt);
  ASSERT_OK_AND_ASSIGN(const SoftmaxChain light,
                       Find(Text{.logit = "select(j <= i, S[b, i, j], -10.0)"}.Get()));
  EXPECT_EQ(light.last_key, std::nullopt);
}

TEST(SoftmaxChain, DividesByTheSumAfterwards) {
  ASSERT_OK_AND_ASSIGN(const SoftmaxChain chain,
                       Find(Text{.weight = "float16(P[b, i, n]/L[b, i])",
                                 .output = "out[b: 2, i: 6, d: 3] = float16(O[b, i, d])"}
                                .Get()));
  EXPECT_EQ(chain.weight->op, ir::Op::kCast);
  EXPECT_EQ(chain.weight->arg(0), chain.exponential);
  EXPECT_EQ(chain.result->op, ir::Op::kCast);
  EXPECT_EQ(chain.result->arg(0)->op, ir::Op::kDiv);
}

// PyTorch's exporter puts 0 in place of weights that are NaN: those of rows without any key.
TEST(SoftmaxChain, WeightsThatAreNaNMayBeZero) {
  const auto find = [](const std::string& weight) {
    return Find(
        Text{.weight = weight, .output = "out[b: 2, i: 6, d: 3] = float16(O[b, i, d])"}.Get());
  };
  constexpr std::string_view kQuotient = "P[b, i, n]/L[b, i]";
  for (const char* form : {"float16(select({0} != {0}, 0.0, {0}))",
                           "select(float16({0}) != float16({0}), float16(0.0), float16({0}))",
                           "select({0} == {0}, float16({0}), float16(0.0))"}) {
    SCOPED_TRACE(form);
    ASSERT_OK_AND_ASSIGN(const SoftmaxChain chain,
                         find(fmt::format(fmt::runtime(form), kQuotient)));
    EXPECT_TRUE(chain.is_normalized_before);
    EXPECT_EQ(chain.weight->arg(0), chain.exponential);
    ASSERT_EQ(chain.result->arg(0)->op, ir::Op::kSelect);
    EXPECT_EQ(chain.result->arg(0)->arg(0)->op, ir::Op::kLt);
    EXPECT_EQ(chain.result->arg(0)->arg(1)->op, ir::Op::kDiv);
  }
  for (const char* form :
       {"float16(select({0} != {0}, 1.0, {0}))", "float16(select({0} != 0.5, 0.0, {0}))",
        "float16(select({0} != {0}, {0}, 0.0))", "float16(select({0} != {0}, 0.0, P[b, i, n]))"}) {
    SCOPED_TRACE(form);
    EXPECT_FALSE(find(fmt::format(fmt::runtime(form), kQuotient)).ok());
  }
}

TEST(SoftmaxChain, TheSumOfValuesMayBeTheOutput) {
  ASSERT_OK_AND_ASSIGN(const SoftmaxChain chain,
                       Find(Text{.weight = "P[b, i, n]/L[b, i]", .output = ""}.Get()));
  EXPECT_EQ(chain.output, chain.weighted);
  EXPECT_EQ(chain.result->op, ir::Op::kDiv);
  EXPECT_EQ(chain.result->arg(0)->id, chain.weighted);
  EXPECT_EQ(chain.result->arg(1)->id, chain.total);
}

TEST(SoftmaxChain, OtherOrdersOfAxes) {
  ASSERT_OK_AND_ASSIGN(const SoftmaxChain chain, Find(R"(
input Q: float16[6, 8, 2, 4]
input K: float16[2, 4, 5]
input V: float16[5, 2, 3]
S[j: 5, g: 8, i: 6, h: 2] = sum(k: 4) float32(K[h, k, j])*float32(Q[i, g, h, k])
M[i: 6, h: 2, g: 8] = max(n: 5) S[n, g, i, h]*0.5
P[h: 2, g: 8, i: 6, j: 5] = exp(S[j, g, i, h]*0.5 - M[i, h, g])
L[g: 8, h: 2, i: 6] = sum(n: 5) P[h, g, i, n]
O[i: 6, g: 8, h: 2, d: 3] = sum(n: 5) P[h, g, i, n]*float32(V[n, h, d])
out[i: 6, h: 2, g: 8, d: 3] = float16(O[i, g, h, d]/L[g, h, i])
)"));
  // The longer one of i and g.
  EXPECT_EQ(chain.row, 2);
  EXPECT_EQ(chain.column, 3);
  EXPECT_EQ(chain.batch, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(chain.extent(chain.key), 5);
}

// Reads inputs in the form of networks: one tensor holds all three, the axes of a single problem
// are indexed by 0, and results are rounded between stages.
TEST(SoftmaxChain, ReadsInputsWhereTheyLie) {
  ASSERT_OK_AND_ASSIGN(const SoftmaxChain chain, Find(R"(
input X: float16[6, 96]
q[b: 1, h: 2, i: 6, k: 16] = X[(b*6 + i)*2 // 2, (h*16 + k) % 32]
K[b: 1, h: 2, i: 6, k: 16] = X[b*6 + i, h*16 + k + 32]
V[b: 1, h: 2, i: 6, k: 16] = X[b*6 + i, h*16 + k + 64]
S[b: 1, h: 2, i: 6, j: 6] = sum(k: 16) float32(q[0, h, i, k])*float32(K[0, h, j, k])
T[b: 1, h: 2, i: 6, j: 6] = float16(S[b, h, i, j])
c[] = float16(0.25)
U[b: 1, h: 2, i: 6, j: 6] = T[b, h, i, j]*c[]
M[b: 1, h: 2, i: 6] = max(j: 6) float32(U[b, h, i, j])
E[b: 1, h: 2, i: 6, j: 6] = exp(float32(U[b, h, i, j]) - M[b, h, i])
L[b: 1, h: 2, i: 6] = sum(j: 6) E[b, h, i, j]
P[b: 1, h: 2, i: 6, j: 6] = float16(E[b, h, i, j]/L[b, h, i])
O[b: 1, h: 2, i: 6, d: 16] = sum(n: 6) float32(P[0, h, i, n])*float32(V[0, h, n, d])
out[b: 1, i: 6, h: 2, d: 16] = float16(O[b, h, i, d])
)"));
  EXPECT_EQ(chain.row, 1);
  EXPECT_EQ(chain.column, 3);
  EXPECT_EQ(chain.batch, (std::vector<int32_t>{0, 2}));
  ir::ExprPool& pool = *chain.pool;
  const ir::Expr head = pool.Mul(pool.Var(2), pool.Int(16)), k = pool.Var(chain.depth);
  EXPECT_EQ(chain.query->arg(0), pool.Var(chain.row));
  EXPECT_EQ(chain.query->arg(1), pool.Add(head, k));
  EXPECT_EQ(arith::Linearize(chain.keys->arg(1)).constant, 32);
  EXPECT_EQ(arith::Linearize(chain.values->arg(1)).constant, 64);
  EXPECT_EQ(chain.logit->op, ir::Op::kMul);
  EXPECT_EQ(chain.logit->arg(0)->id, chain.scores) << "no rounding";
  EXPECT_EQ(chain.logit->arg(1), pool.Float(0.25));
}

TEST(SoftmaxChain, NumbersOfQueriesAndKeysAreTheScores) {
  std::string text = Text{.logit = "S[b, i, j] + 1.0"}.Get();
  const std::string factor = "float32(Q[b, i, k])";
  text.replace(text.find(factor), factor.size(), "float32(Q[b, i, k]*float16(3.0))/8.0");
  ASSERT_OK_AND_ASSIGN(const SoftmaxChain chain, Find(text));
  EXPECT_EQ(chain.score_term->arg(0)->arg(0), chain.query);
  ir::ExprPool& pool = *chain.pool;
  ASSERT_EQ(chain.logit->op, ir::Op::kAdd);
  EXPECT_EQ(chain.logit->arg(0)->arg(1), pool.Float(0.375));
}

TEST(SoftmaxChain, RefusesWhatIsNone) {
  const std::pair<std::string, std::string> kCases[] = {
      {"input A: float32[4, 4]\nB[i: 4] = sum(k: 4) A[i, k]",
       "three sums, a maximum and one output"},
      {Text{.output = "out[b: 2, i: 6, d: 3] = O[b, i, d]"}.Get() + "more[b: 2, i: 6] = L[b, i]",
       "three sums, a maximum and one output"},
      {Text{.logit = "S[b, i, (j + 1) % 5]"}.Get(), "read at other places than its own"},
      {Text{.weight = "float16(P[b, i, n]*2.0)"}.Get(), "are not the same"},
      {Text{.weight = "float16(X[b, i, n])"}.Get(), "are not the same"},
      {Text{.output = "out[b: 2, i: 6, d: 3] = O[b, i, d]*L[b, 0]"}.Get(),
       "read at other places than its own"},
      {Text{.output = "out[b: 2, i: 6] = O[b, i, 1]*L[b, i]"}.Get(),
       "read at other places than its own"},
  };
  for (const auto& [text, why] : kCases) {
    EXPECT_THAT(Find(text), StatusIs(StatusCode::kNotFound, HasSubstr(why))) << text;
  }
}

}  // namespace
}  // namespace kiln::dag
