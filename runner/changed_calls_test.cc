#include "runner/changed_calls.h"

#include <gtest/gtest.h>

#include <set>

namespace kiln::runner {
namespace {

Argument Of(v1::ArgSpec::Role role, int64_t bytes, DType dtype = DType::kFloat32) {
  Argument argument;
  argument.role = role;
  argument.dtype = dtype;
  argument.bytes = bytes;
  argument.elements = bytes / DTypeBytes(dtype);
  return argument;
}

const Argument kInput = Of(v1::ArgSpec::INPUT, 4096);
const Argument kOutput = Of(v1::ArgSpec::OUTPUT, 4096);

TEST(PlanChangedCallsTest, ShortProgramsAreCalledOften) {
  std::mt19937_64 random(1);
  const auto calls = [&](double call_s, double longest_s) {
    const auto plan = PlanChangedCalls(call_s, longest_s, {kInput, kOutput}, random);
    return plan.has_value() ? plan->calls : 0;
  };
  EXPECT_EQ(calls(2e-6, 2e-6), 16);
  EXPECT_EQ(calls(100e-6, 100e-6), 5);
  EXPECT_EQ(calls(400e-6, 400e-6), 4);
  EXPECT_EQ(calls(600e-6, 600e-6), 0) << "one call is read as well";
  // The first call of a program does not decide whether its calls are looked at, only how many.
  EXPECT_EQ(calls(2e-6, 50e-3), 4);
  EXPECT_EQ(calls(0, 0), 16);
}

TEST(PlanChangedCallsTest, EachCallButTheFirstIsCheckedAsOften) {
  std::mt19937_64 random(2);
  std::vector<int> checked(16);
  for (int i = 0; i < 3000; ++i) {
    const auto plan = PlanChangedCalls(1e-6, 1e-6, {kInput}, random);
    ASSERT_TRUE(plan.has_value());
    ++checked[static_cast<size_t>(plan->checked)];
  }
  EXPECT_EQ(checked[0], 0);
  for (size_t call = 1; call < checked.size(); ++call) {
    EXPECT_GT(checked[call], 120) << call;
    EXPECT_LT(checked[call], 290) << call;
  }
}

TEST(PlanChangedCallsTest, MuchDataIsNotChanged) {
  std::mt19937_64 random(3);
  const Argument large = Of(v1::ArgSpec::INPUT, int64_t{65} << 20);
  EXPECT_FALSE(PlanChangedCalls(1e-6, 1e-6, {large, kOutput}, random).has_value());
  // A program cannot avoid the calls by a large workspace.
  const Argument workspace = Of(v1::ArgSpec::WORKSPACE, int64_t{65} << 20);
  const auto plan = PlanChangedCalls(1e-6, 1e-6, {kInput, kOutput, workspace}, random);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->most_ratio, 2);
  EXPECT_EQ(PlanChangedCalls(1e-6, 1e-6, {kInput, kOutput}, random)->most_ratio, 1.3);
  EXPECT_TRUE(ChangesOf(workspace, 2, *plan).empty());
  EXPECT_FALSE(ChangesOf(kOutput, 1, *plan).empty());
}

// The order of the elements before each call is that of the masks so far.
TEST(ChangesOfTest, AnInputIsAsItWasInTheCheckedCallAndInTheEnd) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const ChangedCalls calls{.calls = 16, .checked = static_cast<int>(1 + seed % 15), .seed = seed};
    const std::vector<Change> changes = ChangesOf(kInput, 0, calls);
    ASSERT_EQ(changes.size(), 32u);
    std::set<uint64_t> orders;
    uint64_t order = 0, flipped = kNoPlaces;
    for (int call = 0; call < 32; ++call) {
      const Change& change = changes[static_cast<size_t>(call)];
      order ^= change.mask;
      orders.insert(order);
      EXPECT_EQ(change.from, flipped);
      flipped = change.to;
      EXPECT_EQ(change.flip, uint64_t{1} << 31) << "the sign";
      const bool is_own = call == calls.checked || call == 31;
      EXPECT_EQ(order == 0, is_own) << seed;
      EXPECT_EQ(flipped == kNoPlaces, is_own) << seed;
      EXPECT_EQ(order % 2 == 0, is_own) << "elements move in inputs of any size";
    }
    EXPECT_EQ(orders.size(), 31u) << "all calls differ";
  }
}

TEST(ChangesOfTest, ValuesStayInTheirRange) {
  Argument index = kInput;
  index.index_limit = 5;
  Argument ranged = kInput;
  ranged.range.emplace();
  const ChangedCalls calls{.calls = 8, .checked = 3, .seed = 5};
  for (const Argument& argument : {index, ranged}) {
    for (const Change& change : ChangesOf(argument, 0, calls)) EXPECT_EQ(change.flip, 0u);
  }
}

TEST(ChangesOfTest, OutputsHaveAnotherOrderAndOtherValues) {
  const ChangedCalls calls{.calls = 8, .checked = 3, .seed = 5};
  const std::vector<Change> inputs = ChangesOf(kInput, 0, calls);
  const std::vector<Change> outputs = ChangesOf(kOutput, 1, calls);
  ASSERT_EQ(outputs.size(), 16u);
  for (size_t call = 0; call < 16; ++call) {
    EXPECT_NE(outputs[call].mask, 0u);
    EXPECT_NE(outputs[call].mask, inputs[call].mask) << "elements of an output follow no input";
    EXPECT_EQ(outputs[call].flip, uint64_t{1} << 31) << "the sign";
    EXPECT_EQ(outputs[call].from, kNoPlaces);
    EXPECT_EQ(outputs[call].to, kAllPlaces);
  }
  const Argument flags = Of(v1::ArgSpec::OUTPUT, 100, DType::kBool);
  EXPECT_EQ(ChangesOf(flags, 1, calls)[0].flip, 1u) << "still 0 or 1";
}

}  // namespace
}  // namespace kiln::runner
