// Tests CPU programs over more than 2^31 elements. If index arithmetic had 32 bits, they would give
// wrong answers or crash. The test takes 2.2 GiB and, on two cores, a minute. Start it by hand:
//   bazel test //tests/schedules:large_cpu_test
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/numbers/integers.h"
#include "base/status_testing.h"
#include "compiler/codegen/llvm/llvm.h"
#include "compiler/codegen/llvm/loaded_program_testing.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "search/policies/policy.h"

namespace kiln::search {
namespace {

// The product is 0.2% more than 2^31.
constexpr int64_t kRows = 65602, kColumns = 32815;
static_assert(kRows * kColumns > int64_t{1} << 31);
// Candidates of the search, which are tested beside the unscheduled loops.
constexpr int kCandidates = 2;

int8_t ValueAt(int64_t place) {
  return static_cast<int8_t>((static_cast<uint64_t>(place) * 0x9e3779b97f4a7c15) >> 56);
}

// An array that is zero at first, aligned as programs expect their arguments to be.
template <typename T>
class Array {
 public:
  explicit Array(int64_t elements)
      : elements_(static_cast<size_t>(elements)),
        first_(static_cast<T*>(std::aligned_alloc(
                   kPageBytes, RoundUp(elements * int64_t{sizeof(T)}, int64_t{kPageBytes}))),
               &std::free) {
    std::fill_n(first_.get(), elements_, T{});
  }
  T* data() { return first_.get(); }
  T& operator[](int64_t i) { return first_.get()[i]; }
  std::span<T> all() { return {first_.get(), elements_}; }

 private:
  static constexpr size_t kPageBytes = 4096;
  size_t elements_;
  std::unique_ptr<T, decltype(&std::free)> first_;
};

std::vector<schedule::State> Schedules(const std::string& text) {
  const StatusOr<dag::DagPtr> dag = dag::ParseDag(text);
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  std::vector<schedule::State> states = {schedule::State(*dag)};
  target::HardwareParams hardware;
  hardware.num_cores = 2;
  const Task task(*dag, *target::ParseTarget("llvm"), hardware, "[]");
  const auto policy = MakePolicy("sketch.random", task, /*seed=*/1);
  KILN_CHECK(policy.ok(), "{}", Message(policy.status()));
  const auto candidates = (*policy)->Propose(kCandidates);
  KILN_CHECK(candidates.ok(), "{}", Message(candidates.status()));
  for (const Candidate& candidate : *candidates) {
    auto state = schedule::Replay(task.dag, candidate.steps);
    KILN_CHECK(state.ok(), "{}", Message(state.status()));
    states.push_back(*std::move(state));
  }
  return states;
}

// Runs the schedule's program. Its arguments after those of the computation are workspaces.
Status RunProgram(const schedule::State& state, const std::vector<void*>& arguments) {
  KILN_ASSIGN_OR_RETURN(const ir::Program program, lower::Lower(state, {}));
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget("llvm"));
  KILN_ASSIGN_OR_RETURN(const codegen::Compiled compiled, codegen::CompileLlvm(program, target));
  KILN_ASSIGN_OR_RETURN(codegen::LoadedProgram loaded,
                        codegen::LoadedProgram::Load(compiled.binary));
  std::vector<void*> pointers = arguments;
  std::vector<Array<std::byte>> workspaces;
  for (size_t i = arguments.size(); i < compiled.args.size(); ++i) {
    workspaces.emplace_back(compiled.args[i].bytes());
    pointers.push_back(workspaces.back().data());
  }
  loaded.Run(pointers);
  return OkStatus();
}

Array<int8_t> Table() {
  Array<int8_t> table(kRows * kColumns);
  for (int64_t i = 0; i < kRows * kColumns; ++i) table[i] = ValueAt(i);
  return table;
}

TEST(LargeCpu, ReadsBeyond2To31) {
  Array<int8_t> x = Table();
  std::vector<int32_t> want(kRows);
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kColumns; ++j)
      want[static_cast<size_t>(i)] += ValueAt(i * kColumns + j);
  }
  for (const schedule::State& state :
       Schedules(fmt::format("input x: int8[{0}, {1}]\n"
                             "y[i: {0}] = sum(j: {1}) int32(x[i, j])\n",
                             kRows, kColumns))) {
    SCOPED_TRACE(schedule::PrintSteps(state.steps()));
    Array<int32_t> y(kRows);
    std::ranges::fill(y.all(), -1);
    ASSERT_OK(RunProgram(state, {x.data(), y.data()}));
    EXPECT_TRUE(std::ranges::equal(y.all(), want));
  }
}

TEST(LargeCpu, GathersBeyond2To31) {
  constexpr int64_t kEntries = kRows * kColumns / 16, kGathered = 4096;
  Array<int8_t> table = Table();
  Array<int32_t> ids(kGathered);
  for (int64_t i = 0; i < kGathered; ++i)
    ids[i] = static_cast<int32_t>(kEntries - 1 - i * (kEntries / kGathered));
  for (const schedule::State& state : Schedules(fmt::format("@keep_order\n"
                                                            "input table: int8[{}, 16]\n"
                                                            "input ids: int32[{}]\n"
                                                            "y[i: {}, j: 16] = table[ids[i], j]\n",
                                                            kEntries, kGathered, kGathered))) {
    SCOPED_TRACE(schedule::PrintSteps(state.steps()));
    Array<int8_t> y(kGathered * 16);
    std::ranges::fill(y.all(), int8_t{-1});
    ASSERT_OK(RunProgram(state, {table.data(), ids.data(), y.data()}));
    int64_t different = 0;
    for (int64_t i = 0; i < kGathered * 16; ++i)
      different += y[i] != ValueAt(int64_t{ids[i / 16]} * 16 + i % 16);
    EXPECT_EQ(different, 0);
  }
}

TEST(LargeCpu, WritesBeyond2To31) {
  Array<int8_t> rows(kRows), columns(kColumns);
  for (int64_t i = 0; i < kRows; ++i) rows[i] = ValueAt(i);
  for (int64_t j = 0; j < kColumns; ++j) columns[j] = ValueAt(j + kRows);
  Array<int8_t> y(kRows * kColumns);
  for (const schedule::State& state :
       Schedules(fmt::format("input a: int8[{0}]\ninput b: int8[{1}]\n"
                             "y[i: {0}, j: {1}] = a[i] ^ b[j]\n",
                             kRows, kColumns))) {
    SCOPED_TRACE(schedule::PrintSteps(state.steps()));
    std::ranges::fill(y.all(), int8_t{0});
    ASSERT_OK(RunProgram(state, {rows.data(), columns.data(), y.data()}));
    int64_t different = 0;
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kColumns; ++j)
        different += y[i * kColumns + j] != static_cast<int8_t>(rows[i] ^ columns[j]);
    }
    EXPECT_EQ(different, 0);
  }
}

}  // namespace
}  // namespace kiln::search
