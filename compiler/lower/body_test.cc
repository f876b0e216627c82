#include "compiler/lower/body.h"

#include "base/status_testing.h"
#include "compiler/dag/text.h"
#include "compiler/ir/traverse.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::lower {
namespace {

// Each stage reads the two before it: a tree of them has as many leaves as Fibonacci's numbers say.
schedule::State InlinedChain(int length) {
  std::string text = "input x: float32[8]\na[i: 8] = x[i] + 1.0\nb0[i: 8] = a[i] + x[i]\n";
  std::string before = "a", last = "b0";
  for (int k = 1; k < length; ++k) {
    const std::string name = fmt::format("b{}", k);
    text += fmt::format("{}[i: 8] = {}[i] * 0.5 + {}[i]\n", name, last, before);
    before = std::exchange(last, name);
  }
  const auto dag = dag::ParseDag(text);
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  schedule::State state(*dag);
  for (int s = state.num_stages() - 2; s > 0; --s) {
    const Status status = state.Apply(std::make_shared<schedule::ComputeInlineStep>(s));
    KILN_CHECK(status.ok(), "stage {}: {}", s, Message(status));
  }
  return state;
}

struct Lowered {
  int reads = 0;
  size_t nodes = 0;
};

Lowered Lower(int length) {
  const schedule::State state = InlinedChain(length);
  ir::ExprPool pool;
  arith::Simplifier simplifier(pool);
  const std::vector<arith::Linear> axes = {simplifier.Var(simplifier.AddVar(8))};
  Lowered lowered;
  const ir::Expr body =
      LowerBody(state, state.num_stages() - 1, 0, axes, simplifier,
                [&](int stage, int, const std::vector<arith::Linear>& indices, ir::Type type) {
                  ++lowered.reads;
                  const ir::Expr index[] = {simplifier.ToExpr(indices[0])};
                  return pool.Load(stage, index, type);
                });
  ir::Visit(body, [&](ir::Expr) { ++lowered.nodes; });
  return lowered;
}

TEST(LowerBody, ElementsThatSeveralReadAreLoweredOnce) {
  EXPECT_EQ(Lower(14).reads, Lower(4).reads) << "x is read by two stages";
  EXPECT_EQ(Lower(14).nodes - Lower(13).nodes, Lower(13).nodes - Lower(12).nodes);
}

}  // namespace
}  // namespace kiln::lower
