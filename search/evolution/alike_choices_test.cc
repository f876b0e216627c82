// Tests search/space/alike_products.h by samples, and by changes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/step.h"
#include "search/evolution/mutation.h"
#include "search/sampling/sample_gpu.h"
#include "search/space/alike_products.h"
#include "search/space/matrix_product.h"
#include "search/space/sketch.h"

namespace kiln::search {
namespace {

using schedule::State;
using schedule::StepPtr;

constexpr std::string_view kTwo = R"(input x: float16[128, 256]
input v: float16[256, 512]
input w: float16[256, 512]
a[i: 128, j: 512] = sum(k: 256) float32(x[i, k]) * float32(v[k, j])
b[i: 128, j: 512] = sum(k: 256) float32(x[i, k]) * float32(w[k, j])
y[i: 128, j: 512] = float16(a[i, j] * b[i, j]))";
// The second product is shorter.
constexpr std::string_view kOfTwoLengths = R"(input x: float16[128, 256]
input z: float16[128, 128]
input v: float16[256, 512]
input w: float16[128, 512]
a[i: 128, j: 512] = sum(k: 256) float32(x[i, k]) * float32(v[k, j])
b[i: 128, j: 512] = sum(k: 128) float32(z[i, k]) * float32(w[k, j])
y[i: 128, j: 512] = float16(a[i, j] * b[i, j]))";

Task TaskOf(std::string_view text) {
  const auto dag = dag::ParseDag(text);
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return Task(*dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
}

// Returns samples all of whose two products are computed by matrix units.
std::vector<State> Samples(const Task& task, size_t count, Rng& rng) {
  Parameters parameters;
  parameters.matrix_unit_prob = 1;
  const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  std::vector<State> states;
  for (int draw = 0; draw < 4000 && states.size() < count; ++draw) {
    StatusOr<State> state = SampleGpu(PickFrom(rng, sketches), task, parameters, rng);
    if (state.ok() && ProductsOfMatrixUnits(*state).size() == 2)
      states.push_back(*std::move(state));
  }
  return states;
}

bool HasChosenAlike(const std::vector<std::vector<int>>& sets, const std::vector<StepPtr>& steps) {
  return std::ranges::all_of(sets, [&](const std::vector<int>& set) {
    const StepPtr& first = steps[static_cast<size_t>(set[0])];
    return std::ranges::all_of(set, [&](int number) {
      return WithChoiceOf(first, *steps[static_cast<size_t>(number)]) == first;
    });
  });
}

TEST(AlikeChoices, AreThoseOfAllStagesOfProductsOfOneForm) {
  Rng rng(1);
  const Task task = TaskOf(kTwo);
  const std::vector<State> states = Samples(task, 40, rng);
  ASSERT_EQ(states.size(), 40u);
  std::set<std::string> tags;
  for (const State& state : states) {
    for (const std::vector<int>& set : AlikeChoices(state)) {
      ASSERT_EQ(set.size(), 2u);
      EXPECT_NE(set[0], set[1]);
      tags.insert(std::string(state.steps()[static_cast<size_t>(set[0])]->tag()));
    }
  }
  EXPECT_THAT(tags, testing::UnorderedElementsAre("SP", "PR", "BF", "LA", "SA"));
}

TEST(AlikeChoices, ThereAreNoneOfProductsOfOtherLengths) {
  Rng rng(2);
  for (const State& state : Samples(TaskOf(kOfTwoLengths), 20, rng))
    EXPECT_TRUE(AlikeChoices(state).empty());
}

TEST(AlikeChoices, SamplesAreMostlyAlike) {
  Rng rng(3);
  int alike = 0;
  const std::vector<State> states = Samples(TaskOf(kTwo), 100, rng);
  for (const State& state : states) {
    const auto sets = AlikeChoices(state);
    alike += !sets.empty() && HasChosenAlike(sets, state.steps()) ? 1 : 0;
  }
  EXPECT_GE(alike, 50);
  EXPECT_LE(alike, 95);
}

TEST(AlikeChoices, ChangesAreMostlyAlike) {
  Rng rng(4);
  const Task task = TaskOf(kTwo);
  int changes = 0, alike = 0;
  for (State& state : Samples(task, 40, rng)) {
    const auto sets = AlikeChoices(state);
    if (sets.empty() || !HasChosenAlike(sets, state.steps())) continue;
    for (int i = 0; i < 10; ++i) {
      const auto mutation = Mutate(task, {}, {.steps = state.steps()}, rng);
      if (!mutation.ok()) continue;
      ++changes;
      alike += HasChosenAlike(sets, mutation->steps) ? 1 : 0;
    }
  }
  ASSERT_GE(changes, 100);
  EXPECT_GE(alike, changes / 2);
  EXPECT_LT(alike, changes);
}

TEST(AlikeChoices, WhatWasNotTheSameIsNotChangedAlike) {
  Rng rng(5);
  for (const State& state : Samples(TaskOf(kTwo), 20, rng)) {
    for (const std::vector<int>& set : AlikeChoices(state)) {
      const auto first = static_cast<size_t>(set[0]), second = static_cast<size_t>(set[1]);
      if (WithChoiceOf(state.steps()[first], *state.steps()[second]) == state.steps()[first])
        continue;
      // Both have the choice of the second one after the change.
      std::vector<StepPtr> after = state.steps();
      after[first] = WithChoiceOf(after[first], *after[second]);
      ChangeAlike(state, after);
      EXPECT_EQ(after[second], state.steps()[second]);
    }
  }
}

}  // namespace
}  // namespace kiln::search
