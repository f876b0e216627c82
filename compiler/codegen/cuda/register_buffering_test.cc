#include "compiler/codegen/cuda/register_buffering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/codegen/cuda/tile_order.h"
#include "compiler/ir/program_text.h"

namespace kiln::codegen {
namespace {
using testing::HasSubstr;
using testing::Not;

// Matrices in shared memory, a tile of m x n a thread, which is one of 2 x 2; `nest`: the loops
// around the accumulation, `{}` for that.
ir::Program Matmul(int buffering, std::string_view nest, std::string_view statement) {
  std::string loops(nest);
  const int depth = static_cast<int>(std::ranges::count(loops, '{')) - 1;
  loops.replace(loops.find("{}"), 2, statement);
  const std::string text = fmt::format(
      R"(program(A: input float32[16, 12], B: input float32[16, 16], C: output float32[12, 16]) {{
  stage s{}
  kernel k grid [1, 1, 1] block [4, 1, 1] {{
    threadIdx.x t in 0..4 {{
      alloc acc: local float32[6, 8]
      alloc a: shared float32[16, 12]
      alloc b: shared float32[16, 16]
      for f in 0..48 {{ a[(f*4 + t) // 12, (f*4 + t) % 12] = A[(f*4 + t) // 12, (f*4 + t) % 12] @ s }}
      for g in 0..64 {{ b[(g*4 + t) // 16, (g*4 + t) % 16] = B[(g*4 + t) // 16, (g*4 + t) % 16] @ s }}
      barrier
      for i0 in 0..6 {{ for j0 in 0..8 {{ acc[i0, j0] = 0.0 @ s }} }}
      {} {}
      for i1 in 0..6 {{ for j1 in 0..8 {{ C[t // 2 * 6 + i1, t % 2 * 8 + j1] = acc[i1, j1] @ s }} }}
    }}
  }}
}})",
      buffering > 0 ? fmt::format(" register_buffering {}", buffering) : "", loops,
      std::string(depth, '}'));
  StatusOr<ir::Program> program = ir::ParseProgram(text);
  KILN_CHECK(program.ok(), "{}\n{}", Message(program.status()), text);
  return *std::move(program);
}

constexpr std::string_view kPlain =
    "acc[i, j] = acc[i, j] + a[k, t // 2 * 6 + i]*b[k, t % 2 * 8 + j] @ s";
constexpr std::string_view kNest = "for k in 0..16 { for i in 0..6 { for j in 0..8 { {}";

std::string Arranged(const ir::Program& program) {
  ir::Program arranged = program;
  arranged.pool = std::make_shared<ir::ExprPool>();
  SinkRegisterLoops(arranged);
  DoubleBufferOperands(arranged);
  EXPECT_OK(ir::Verify(arranged));
  return ir::ProgramText(arranged);
}

TEST(CudaRegisterBuffering, ReadAStepAhead) {
  const std::string text = Arranged(Matmul(1, kNest, kPlain));
  EXPECT_THAT(text, HasSubstr(R"(
      alloc b.registers: local float32[2, 8] {
        alloc a.registers: local float32[2, 6]
        vectorize i.f in 0..6 {
          a.registers[0, i.f] = a[0, (t // 2)*6 + i.f] @ s
        }
        vectorize j.f in 0..8 {
          b.registers[0, j.f] = b[0, (t % 2)*8 + j.f] @ s
        }
        unroll k in 0..16 {
          if k < 15 {
            vectorize i.f1 in 0..6 {
              a.registers[(k + 1) % 2, i.f1] = a[k + 1, (t // 2)*6 + i.f1] @ s
            }
)"));
  EXPECT_THAT(text,
              HasSubstr("acc[i, j] = acc[i, j] + a.registers[k % 2, i]*b.registers[k % 2, j]"));
}

TEST(CudaRegisterBuffering, ToAndFro) {
  EXPECT_THAT(Arranged(Matmul(2, kNest, kPlain)),
              HasSubstr("b.registers[k % 2, j + (i % 2)*(7 - j*2)]"));
}

TEST(CudaRegisterBuffering, AFusedLoopIsTakenApart) {
  const std::string text =
      Arranged(Matmul(1, "for k in 0..16 { for i in 0..3 { for j in 0..4 { unroll v in 0..4 { {}",
                      "acc[(v*12 + i*4 + j) // 8, (v*12 + i*4 + j) % 8] = "
                      "acc[(v*12 + i*4 + j) // 8, (v*12 + i*4 + j) % 8] + a[k, t // 2 * 6 + v // 2 "
                      "* 3 + i]*b[k, t % 2 * 8 + v % 2 * 4 + j] @ s"));
  EXPECT_THAT(text, HasSubstr("alloc a.registers: local float32[2, 2, 3]"));
  EXPECT_THAT(text, HasSubstr("a.registers[k % 2, v.d, i]*b.registers[k % 2, v.d1, j]"));
}

TEST(CudaRegisterBuffering, TheSameResults) {
  const struct {
    std::string_view nest, statement;
  } kCases[] = {
      {kNest, kPlain},
      // Steps of two loops; the order of the schedule is not that of the registers.
      {"for k0 in 0..4 { for i in 0..6 { for k1 in 0..4 { for j in 0..8 { {}",
       "acc[i, j] = acc[i, j] + a[k0*4 + k1, t // 2 * 6 + i]*b[k0*4 + k1, t % 2 * 8 + j] @ s"},
      {"for k in 0..16 { unroll v in 0..12 { for i in 0..2 { for j in 0..2 { {}",
       "acc[(v*4 + i*2 + j) // 8, (v*4 + i*2 + j) % 8] = "
       "acc[(v*4 + i*2 + j) // 8, (v*4 + i*2 + j) % 8] + a[k, t // 2 * 6 + v // 4 * 2 + i]*b[k, t "
       "% 2 * 8 + v % 4 * 2 + j] @ s"},
      // Nothing of the second operand depends on the tile.
      {kNest, "acc[i, j] = acc[i, j] + a[k, t // 2 * 6 + i]*b[k, 3] @ s"},
      {"for i in 0..6 { for j in 0..8 { for k in 0..16 { {}",
       "acc[i, j] = max(acc[i, j], a[k, t // 2 * 6 + i] - b[k, t % 2 * 8 + j]) @ s"}};
  for (const auto& [nest, statement] : kCases) {
    for (const int way : {1, 2}) {
      SCOPED_TRACE(fmt::format("{} {} {}", way, nest, statement));
      const ir::Program program = Matmul(way, nest, statement);
      EXPECT_THAT(Arranged(program), HasSubstr(".registers["));
      ASSERT_OK(CompareEmulated(program, /*seed=*/way, /*tolerance=*/0));
    }
  }
}

TEST(CudaRegisterBuffering, TilesThatStayAsTheyAre) {
  const auto stays = [](std::string_view nest, std::string_view statement) {
    std::string with = Arranged(Matmul(2, nest, statement));
    const std::string_view hint = " register_buffering 2";
    return with.erase(with.find(hint), hint.size()) == Arranged(Matmul(0, nest, statement));
  };
  // A condition around the sum, or around what is read.
  EXPECT_TRUE(stays(kNest, fmt::format("if k + t < 17 {{ {} }}", kPlain)));
  EXPECT_TRUE(stays(kNest,
                    "acc[i, j] = acc[i, j] + if(k + t < 17, a[k, t // 2 * 6 + i], 0.0)*b[k, t % 2 "
                    "* 8 + j] @ s"));
  // Global memory only.
  EXPECT_TRUE(stays(kNest, "acc[i, j] = acc[i, j] + A[k, t // 2 * 6 + i]*B[k, t % 2 * 8 + j] @ s"));
  EXPECT_FALSE(stays(kNest, kPlain));
}

// They are in memory, whatever becomes of the operands.
TEST(CudaRegisterBuffering, SumsBeyondTheRegistersGainNothing) {
  const auto text = [](int rows) {
    StatusOr<ir::Program> program = ir::ParseProgram(fmt::format(
        R"(program(A: input float32[8, {0}], C: output float32[{0}, 8]) {{
  stage s register_buffering 1
  kernel k grid [1, 1, 1] block [8, 1, 1] {{
    threadIdx.x t in 0..8 {{
      alloc acc: local float32[{0}]
      alloc a: shared float32[8, {0}]
      for f in 0..{0} {{ a[t, f] = A[t, f] @ s }}
      barrier
      for i0 in 0..{0} {{ acc[i0] = 0.0 @ s }}
      for k in 0..8 {{ for i in 0..{0} {{ acc[i] = acc[i] + a[k, i] @ s }} }}
      for i1 in 0..{0} {{ C[i1, t] = acc[i1] @ s }}
    }}
  }}
}})",
        rows));
    KILN_CHECK(program.ok(), "{}", Message(program.status()));
    return Arranged(*program);
  };
  EXPECT_THAT(text(40), HasSubstr("a.registers["));
  EXPECT_THAT(text(360), Not(HasSubstr("a.registers[")));
}

TEST(CudaRegisterBuffering, StepsThatAreTooManyAreTakenInPart) {
  const std::string text = Arranged(Matmul(
      1, "for k0 in 0..4 { for r in 0..10 { for k1 in 0..4 { for i in 0..6 { for j in 0..8 { {}",
      "acc[i, j] = acc[i, j] + a[k0*4 + k1, t // 2 * 6 + i]*b[k0*4 + k1, t % 2 * 8 + j] @ s"));
  EXPECT_THAT(text, HasSubstr("for k0 in 0..4"));
  EXPECT_THAT(text, Not(HasSubstr("for r in")));
  EXPECT_THAT(text, HasSubstr("unroll k1.f in 0..40"));
}

}  // namespace
}  // namespace kiln::codegen
