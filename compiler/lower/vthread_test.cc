// The vthread pass, on programs written by hand: its result, and that the result computes the same.
#include "compiler/lower/vthread.h"

#include "base/status_testing.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/program_text.h"

namespace kiln::lower {
namespace {

constexpr std::string_view kHead = R"(program(
  A: input float32[4, 8],
  B: output float32[4, 8],
) {
stage s
)";

ir::Program Parse(std::string_view body) {
  StatusOr<ir::Program> program =
      ir::ParseProgram(fmt::format("{}kernel k {{\n{}\n}}\n}}\n", kHead, body));
  KILN_CHECK(program.ok(), "{}\n{}", Message(program.status()), body);
  return *std::move(program);
}

ir::NDArray Result(const ir::Program& program) {
  ir::NDArray a(ir::kFloat32, {4, 8}), b(ir::kFloat32, {4, 8});
  a.FillRandom(1, ir::RandomKind::kSmallIntegers);
  b.Poison();
  ir::NDArray* const arguments[] = {&a, &b};
  EXPECT_OK(ir::Interpret(program, arguments));
  return b;
}

void ExpectInjected(std::string_view before, std::string_view after) {
  ir::Program program = Parse(before);
  const ir::NDArray want = Result(program);
  InjectVThreads(program);
  EXPECT_OK(ir::Verify(program));
  EXPECT_EQ(ir::ProgramText(program), ir::ProgramText(Parse(after)));
  EXPECT_EQ(Result(program), want);
}

TEST(InjectVThreads, MovesInsideTheOtherLoops) {
  ExpectInjected("vthread v in 0..4 { for i in 0..8 { B[v, i] = A[v, i] @ s } }",
                 "for i in 0..8 { unroll v in 0..4 { B[v, i] = A[v, i] @ s } }");
}

TEST(InjectVThreads, LocalsThatDifferGetACopyEach) {
  ExpectInjected(R"(
      vthread v in 0..4 {
        alloc t: local float32[8]
        for i in 0..8 { t[i] = A[v, i] @ s }
        for j in 0..8 { B[v, j] = t[j] @ s }
      })",
                 R"(
      alloc t: local float32[4, 8]
      for i in 0..8 { unroll v in 0..4 { t[v, i] = A[v, i] @ s } }
      for j in 0..8 { unroll v_3 in 0..4 { B[v_3, j] = t[v_3, j] @ s } })");
}

TEST(InjectVThreads, WhatDoesNotDependOnThemIsDoneOnce) {
  ExpectInjected(R"(
      vthread v in 0..4 {
        alloc t: local float32[8]
        for i in 0..8 { t[i] = A[0, i] @ s }
        for j in 0..8 { B[v, j] = t[j] @ s }
      })",
                 R"(
      alloc t: local float32[8]
      for i in 0..8 { t[i] = A[0, i] @ s }
      for j in 0..8 { unroll v in 0..4 { B[v, j] = t[j] @ s } })");
}

// u is computed from t, which is found to depend on the virtual thread only after the first look at
// u.
TEST(InjectVThreads, DependenceIsPassedOn) {
  ExpectInjected(R"(
      vthread v in 0..4 {
        alloc u: local float32[1]
        alloc t: local float32[1]
        t[0] = A[0, 0] @ s
        for i in 0..8 {
          u[0] = t[0] @ s
          t[0] = A[v, i] @ s
          B[v, i] = u[0] + t[0] @ s
        }
      })",
                 R"(
      alloc u: local float32[4, 1]
      alloc t: local float32[4, 1]
      unroll v in 0..4 { t[v, 0] = A[0, 0] @ s }
      for i in 0..8 {
        unroll v_2 in 0..4 { u[v_2, 0] = t[v_2, 0] @ s }
        unroll v_3 in 0..4 { t[v_3, 0] = A[v_3, i] @ s }
        unroll v_4 in 0..4 { B[v_4, i] = u[v_4, 0] + t[v_4, 0] @ s }
      })");
}

TEST(InjectVThreads, ConditionsOnThemArePartOfEachCopy) {
  ExpectInjected(R"(
      for z in 0..32 { B[z // 8, z % 8] = 0.0 @ s }
      vthread v in 0..4 {
        for i in 0..8 {
          if i < 5 { if v*8 + i < 20 { B[v, i] = A[v, i] @ s } }
        }
      })",
                 R"(
      for z in 0..32 { B[z // 8, z % 8] = 0.0 @ s }
      for i in 0..8 {
        if i < 5 { unroll v in 0..4 { if v*8 + i < 20 { B[v, i] = A[v, i] @ s } } }
      })");
}

// The store mentions no virtual thread, but only some virtual threads reach it.
TEST(InjectVThreads, LocalsWrittenUnderAConditionOnThemDiffer) {
  ExpectInjected(R"(
      vthread v in 0..4 {
        alloc t: local float32[1]
        t[0] = 1.0 @ s
        if v < 2 { t[0] = 2.0 @ s }
        for i in 0..8 { B[v, i] = t[0] @ s }
      })",
                 R"(
      alloc t: local float32[4, 1]
      unroll v in 0..4 { t[v, 0] = 1.0 @ s }
      unroll v_2 in 0..4 { if v_2 < 2 { t[v_2, 0] = 2.0 @ s } }
      for i in 0..8 { unroll v_3 in 0..4 { B[v_3, i] = t[v_3, 0] @ s } })");
}

TEST(InjectVThreads, TwoOfThem) {
  ExpectInjected(R"(
      vthread v in 0..4 {
        vthread w in 0..2 {
          alloc t: local float32[4]
          for i in 0..4 { t[i] = A[v, w*4 + i] @ s }
          for j in 0..4 { B[v, w*4 + j] = t[j] @ s }
        }
      })",
                 R"(
      alloc t: local float32[4, 2, 4]
      for i in 0..4 { unroll w in 0..2 { unroll v in 0..4 { t[v, w, i] = A[v, w*4 + i] @ s } } }
      for j in 0..4 {
        unroll w_4 in 0..2 { unroll v_5 in 0..4 { B[v_5, w_4*4 + j] = t[v_5, w_4, j] @ s } }
      })");
}

// A cooperative fetch into shared memory and its barriers happen once, not once per virtual thread.
TEST(InjectVThreads, SharedMemoryAndBarriersStayOne) {
  ir::Program program = *ir::ParseProgram(R"(program(
    A: input float32[4, 8],
    B: output float32[4, 8],
  ) {
    stage fetch
    stage s
    kernel k grid [1, 1, 1] block [8, 1, 1] {
      vthread v in 0..4 {
        threadIdx.x x in 0..8 {
          alloc row: shared float32[8]
          for i in 0..4 {
            barrier
            row[x] = A[i, x] @ fetch
            barrier
            if i == v { B[v, 7 - x] = row[7 - x] @ s }
          }
        }
      }
    }
  })");
  InjectVThreads(program);
  EXPECT_OK(ir::Verify(program));
  const std::string text = ir::ProgramText(program);
  EXPECT_THAT(text, testing::HasSubstr("alloc row: shared float32[8]"));
  EXPECT_THAT(text, testing::HasSubstr(R"(        barrier
        row[x] = A[i, x] @ fetch
        barrier
        unroll v in 0..4 {
          if i == v {)"));
  const ir::NDArray got = Result(program);
  ir::NDArray a(ir::kFloat32, {4, 8});
  a.FillRandom(1, ir::RandomKind::kSmallIntegers);
  EXPECT_EQ(got, a);
}

TEST(InjectVThreads, OtherLoopsAreLeftAlone) {
  constexpr std::string_view kBody =
      "for i in 0..4 { unroll j in 0..8 { if j < 8 { B[i, j] = A[i, j] @ s } } }";
  ExpectInjected(kBody, kBody);
}

}  // namespace
}  // namespace kiln::lower
