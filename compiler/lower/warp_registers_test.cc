#include "compiler/lower/warp_registers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"

namespace kiln::lower {
namespace {

using testing::IsEmpty;

StatusOr<std::string> AttentionText(std::string_view tile) {
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag,
                        dag::BuildOp("attention", "2,64,32", {.dtype = ir::kFloat16}));
  KILN_ASSIGN_OR_RETURN(const auto steps, schedule::ParseSteps(fmt::format("[[\"OS\", {}, {}]]",
                                                                           dag->size() - 1, tile)));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(dag, steps));
  KILN_ASSIGN_OR_RETURN(const ir::Program program, Lower(state, {.gpu = true}));
  return ir::ProgramText(program);
}

// Returns the names of the buffers that are held in registers.
std::vector<std::string> Held(const std::string& text, bool pairs, bool* is_all = nullptr) {
  StatusOr<ir::Program> program = ir::ParseProgram(text);
  KILN_CHECK(program.ok(), "{}", Message(program.status()));
  const WarpRegisters held = FindWarpRegisters(*program, program->kernels[0]);
  if (is_all != nullptr) *is_all = held.is_all;
  std::vector<std::string> names;
  const auto name = [&](int32_t slot) { return program->buffers[static_cast<size_t>(slot)].name; };
  for (const auto& [slot, unused] : held.pairs) {
    if (pairs) names.push_back(name(slot));
  }
  for (const auto& [slot, unused] : held.rows) {
    if (!pairs) names.push_back(name(slot));
  }
  return names;
}

// Returns the text with all occurrences of `from`, of which there must be some, replaced.
std::string With(std::string text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  KILN_CHECK(at != text.npos, "{} is not in\n{}", from, text);
  for (; at != text.npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

TEST(WarpRegisters, OfAttentionNothingIsLeftInMemory) {
  for (const std::string_view tile : {"16, 16, 1, 1, 1", "32, 64, 2, 2, 1", "16, 32, 4, 3, 1",
                                      "16, 32, 4, 1, 2", "16, 16, 4, 2, 2"}) {
    ASSERT_OK_AND_ASSIGN(const std::string text, AttentionText(tile));
    bool is_all = false;
    EXPECT_EQ(Held(text, true, &is_all), std::vector<std::string>{"weights"}) << text;
    EXPECT_EQ(Held(text, false),
              (std::vector<std::string>{"highest_of_threads", "total_of_threads"}))
        << text;
    EXPECT_TRUE(is_all);
  }
}

TEST(WarpRegisters, PairsAreOfMatrixUnits) {
  ASSERT_OK_AND_ASSIGN(const std::string text, AttentionText("16, 32, 2, 2, 0"));
  bool is_all = true;
  EXPECT_THAT(Held(text, true, &is_all), IsEmpty());
  EXPECT_EQ(Held(text, false),
            (std::vector<std::string>{"highest_of_threads", "total_of_threads"}));
  EXPECT_FALSE(is_all);
}

TEST(WarpRegisters, WhatOthersHaveIsInMemory) {
  ASSERT_OK_AND_ASSIGN(const std::string text, AttentionText("16, 16, 1, 1, 1"));
  // The weights are rows of another thread, or a row's elements are in another order.
  EXPECT_THAT(
      Held(With(text, "float32(weights[(thread // 32)*16 + ", "float32(weights[15 - "), true),
      IsEmpty());
  const std::string turned =
      With(text, "thread % 32 % 4] = new_highest", "3 - thread % 4] = new_highest");
  EXPECT_EQ(Held(turned, false), std::vector<std::string>{"total_of_threads"});
}

TEST(WarpRegisters, OnlyWhereWarpsExchange) {
  ASSERT_OK_AND_ASSIGN(const std::string text, AttentionText("16, 16, 1, 1, 1"));
  const std::string blocks = With(text, "warp_barrier", "barrier");
  EXPECT_THAT(Held(blocks, true), IsEmpty());
  EXPECT_THAT(Held(blocks, false), IsEmpty());
}

}  // namespace
}  // namespace kiln::lower
