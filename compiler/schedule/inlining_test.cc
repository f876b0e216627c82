#include "compiler/schedule/inlining.h"

#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/builder.h"
#include "compiler/dag/limits.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

using testing::HasSubstr;

// A chain of `count` operators. `body` makes the body of an operator from the two operators before
// it.
template <typename Body>
dag::DagPtr Chain(int count, const Body& body) {
  dag::DagBuilder b;
  dag::TensorRef last = b.Placeholder("X0", ir::kFloat32, {8}), before = last;
  for (int k = 1; k <= count; ++k) {
    const dag::TensorRef next = b.Compute(fmt::format("X{}", k), {{"i", 8}},
                                          [&](dag::Vars v) { return body(last, before, v[0]); });
    before = std::exchange(last, next);
  }
  return *b.Build();
}

dag::DagPtr Squares(int count) {
  return Chain(count, [](auto x, auto, auto i) { return x(i) * x(i); });
}
dag::DagPtr Fibonacci(int count) {
  return Chain(count, [](auto x, auto before, auto i) { return x(i) + before(i); });
}
dag::DagPtr Sums(int count) {
  return Chain(count, [](auto x, auto, auto i) { return x(i) + 1.0; });
}
// Each index contains the previous index twice.
dag::DagPtr SquaredIndices(int count) {
  return Chain(count, [](auto x, auto, auto i) { return x((i * i) % 8) + 1.0; });
}

// Inlines all stages that may be inlined, in the order of the stages or in the reverse one. Returns
// their number.
int InlineAll(State& state, bool forward) {
  int inlined = 0;
  const int n = state.num_stages();
  for (int i = 1; i < n - 1; ++i) {
    const int s = forward ? i : n - 1 - i;
    inlined += state.Apply(std::make_shared<ComputeInlineStep>(s)).ok();
  }
  return inlined;
}

TEST(Inlining, ShortChainsAreInlinedWhole) {
  for (const bool forward : {false, true}) {
    for (const dag::DagPtr& dag : {Squares(8), Fibonacci(8), Sums(40), SquaredIndices(6)}) {
      State state(dag);
      EXPECT_EQ(InlineAll(state, forward), dag->size() - 2);
    }
  }
}

TEST(Inlining, WhatGrowsExponentiallyStaysAStage) {
  for (const bool forward : {false, true}) {
    for (const dag::DagPtr& dag : {Squares(60), Fibonacci(60), SquaredIndices(60)}) {
      State state(dag);
      const int inlined = InlineAll(state, forward);
      EXPECT_GT(inlined, 40);
      EXPECT_LT(inlined, dag->size() - 2);
    }
  }
}

TEST(Inlining, LongChainsAreCut) {
  for (const bool forward : {false, true}) {
    State state(Sums(1000));
    const int inlined = InlineAll(state, forward);
    EXPECT_GT(inlined, 900);
    EXPECT_LT(inlined, 995);
  }
}

TEST(Inlining, TheRefusalSaysHowLarge) {
  State state(Squares(16));
  for (int s = 15; s > 4; --s) {
    const Status status = state.Apply(std::make_shared<ComputeInlineStep>(s));
    if (status.ok()) continue;
    EXPECT_THAT(status, StatusIs(StatusCode::kInvalidArgument,
                                 HasSubstr("inlined it would add 5.12e+03 operations to the stages "
                                           "that read it, expected at most 4096")));
    EXPECT_EQ(state.attach(s).kind, Attach::kRoot);
    return;
  }
  FAIL() << "nothing was refused";
}

TEST(Inlining, EachReaderMayHoldACopy) {
  dag::DagBuilder b;
  const auto input = b.Placeholder("A", ir::kFloat32, {8});
  const auto shared =
      b.Compute("S", {{"i", 8}}, [&](dag::Vars v) { return input(v[0]) * 2.0 + 1.0; });
  for (int k = 0; k < 2000; ++k) {
    b.Compute(fmt::format("B{}", k), {{"i", 8}}, [&](dag::Vars v) { return shared(v[0]) + k; });
  }
  State state(*b.Build());
  EXPECT_OK(state.Apply(std::make_shared<ComputeInlineStep>(1)));
  EXPECT_EQ(state.attach(1).kind, Attach::kInlined);
}

}  // namespace
}  // namespace kiln::schedule
