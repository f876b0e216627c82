#include "compiler/ir/pass.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/status_testing.h"
#include "compiler/ir/program_text.h"

namespace kiln::ir {
namespace {

using testing::HasSubstr;

constexpr const char* kText = R"(
program(
  x: input float32[8],
  y: output float32[8],
) {
  stage y
  kernel y {
    for i in 0..8 {
      y[i] = x[i] @ y
    }
  }
})";

void Nothing(Program&) {}

void MakeParallel(Program& program) {
  const Stmt loop = program.kernels[0].body;
  program.kernels[0].body =
      MakeFor(*program.pool, loop->var, loop->extent, LoopKind::kParallel, loop->body());
}

// Leaves a variable that no loop binds.
void RemoveLoop(Program& program) { program.kernels[0].body = program.kernels[0].body->body(); }

class PassTest : public testing::Test {
 protected:
  struct Seen {
    std::string name;
    bool changed, left_out;
    bool operator==(const Seen&) const = default;
  };

  PassTest() {
    instruments_.observer = [this](const PassReport& report) {
      seen_.push_back({std::string(report.name), report.changed, report.left_out});
      EXPECT_GE(report.seconds, 0);
    };
  }
  Status RunBoth() {
    PassRunner passes(&instruments_);
    KILN_RETURN_IF_ERROR(passes.Run("nothing", program_, Nothing));
    return passes.Run("make-parallel", program_, MakeParallel);
  }
  bool IsParallel() const { return program_.kernels[0].body->loop_kind == LoopKind::kParallel; }

  Program program_ = *ParseProgram(kText);
  PassInstruments instruments_;
  std::vector<Seen> seen_;
};

TEST_F(PassTest, RunsInOrderAndSaysWhatChanged) {
  EXPECT_OK(RunBoth());
  EXPECT_TRUE(IsParallel());
  EXPECT_EQ(seen_, (std::vector<Seen>{{"nothing", false, false}, {"make-parallel", true, false}}));
}

TEST_F(PassTest, OneIsLeftOut) {
  instruments_.leave_out = {"make-parallel"};
  EXPECT_OK(RunBoth());
  EXPECT_FALSE(IsParallel());
  EXPECT_EQ(seen_.back(), (Seen{"make-parallel", false, true}));
}

TEST_F(PassTest, ABrokenProgramIsTheFaultOfItsPass) {
  PassRunner passes(&instruments_);
  EXPECT_OK(passes.Run("nothing", program_, Nothing));
  EXPECT_THAT(passes.Run("take-the-loop-away", program_, RemoveLoop),
              StatusIs(StatusCode::kInternal, HasSubstr("broken after take-the-loop-away")));
}

TEST_F(PassTest, WhatLeadsToAProgramIsTimed) {
  PassRunner passes(&instruments_);
  EXPECT_EQ(passes.Time("count", [] { return 7; }), 7);
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].name, "count");
}

// All tests of this project run with KILN_DEBUG set (.bazelrc).
TEST(PassEnvironmentTest, TestsVerify) { EXPECT_NE(InstrumentsOfEnvironment(), nullptr); }

}  // namespace
}  // namespace kiln::ir
