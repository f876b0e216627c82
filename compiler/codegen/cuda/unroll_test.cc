#include "compiler/codegen/cuda/unroll.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/tile_order.h"
#include "compiler/ir/program_text.h"

namespace kiln::codegen {
namespace {
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A register tile of m x n, summed up over k in the order  loops  (program text, `{}` for the
// innermost statement).
std::string Tile(int m, int n, int k, std::string_view loops, int threads = 8) {
  const std::string store = "acc[i, j] = acc[i, j] + a[t, i, k0]*b[t, k0, j] @ s";
  std::string nest(loops);
  nest.replace(nest.find("{}"), 2, store);
  for (const auto& [name, extent] : {std::pair{"i", m}, {"j", n}, {"k0", k}}) {
    const std::string key = fmt::format("{} in N", name);
    nest.replace(nest.find(key), key.size(), fmt::format("{} in 0..{}", name, extent));
  }
  const size_t braces = static_cast<size_t>(std::ranges::count(loops, '('));
  for (char& c : nest) c = c == '(' ? '{' : c;
  nest += std::string(braces, '}');
  return fmt::format(
      "program(a: input float32[{4}, {0}, {2}], b: input float32[{4}, {2}, {1}], "
      "out: output float32[{4}, {0}, {1}]) {{ stage s kernel k grid [1, 1, 1] "
      "block [{4}, 1, 1] {{ threadIdx.x t in 0..{4} {{ alloc acc: local float32[{0}, {1}] "
      "for i0 in 0..{0} {{ for j0 in 0..{1} {{ acc[i0, j0] = 0.0 @ s }} }} {3} "
      "for i1 in 0..{0} {{ for j1 in 0..{1} {{ out[t, i1, j1] = acc[i1, j1] @ s }} }} }} }} }}",
      m, n, k, nest, threads);
}

struct Planned {
  ir::Program program;
  ir::Stmt body;
  UnrollPlan plan;
};

std::unique_ptr<Planned> Plan(const std::string& text) {
  StatusOr<ir::Program> program = ir::ParseProgram(text);
  KILN_CHECK(program.ok(), "{}\n{}", Message(program.status()), text);
  auto result = std::make_unique<Planned>();
  result->program = *std::move(program);
  SinkRegisterLoops(result->program);
  const ir::Kernel& kernel = result->program.kernels[0];
  result->body = kernel.body;
  result->plan = PlanUnrolling(result->program, result->body, kernel.block[0]);
  return result;
}

// "k0 i* j*": the loops around the accumulation; * unrolled, /4 in part, ! to stay a loop.
std::string Loops(const Planned& planned) {
  std::string text;
  const std::function<void(ir::Stmt)> walk = [&](ir::Stmt stmt) {
    if (stmt->kind == ir::StmtKind::kFor && stmt->loop_kind < ir::LoopKind::kBlockX) {
      const std::string& name = planned.program.vars[static_cast<size_t>(stmt->var)].name;
      if (name == "k0" || name == "i" || name == "j") {
        text += (text.empty() ? "" : " ") + name;
        const auto copies = planned.plan.copies.find(stmt);
        if (copies != planned.plan.copies.end()) {
          text += copies->second == stmt->extent ? "*"
                  : copies->second == 1          ? "!"
                                                 : fmt::format("/{}", copies->second);
        }
      }
    }
    for (ir::Stmt child : stmt->children()) walk(child);
  };
  walk(planned.body);
  return text;
}

TEST(CudaUnroll, RegisterTilesInsideReductions) {
  EXPECT_EQ(Loops(*Plan(Tile(4, 4, 64, "for i in N ( for k0 in N ( for j in N ( {}"))),
            "k0! i* j*");
  EXPECT_EQ(Loops(*Plan(Tile(4, 4, 8, "for k0 in N ( for i in N ( for j in N ( {}"))), "k0 i* j*");
  EXPECT_EQ(Loops(*Plan(Tile(4, 4, 8, "for i in N ( unroll k0 in N ( unroll j in N ( {}"))),
            "k0* i* j*");
}

TEST(CudaUnroll, LongRequestsAreGrantedInPart) {
  EXPECT_EQ(Loops(*Plan(Tile(8, 8, 64, "unroll k0 in N ( for i in N ( for j in N ( {}"))),
            "k0/16 i* j*");
}

TEST(CudaUnroll, ArraysBeyondTheRegistersStayInMemory) {
  EXPECT_EQ(Loops(*Plan(Tile(32, 32, 8, "for k0 in N ( unroll i in N ( unroll j in N ( {}"))),
            "k0! i! j/16");
  // A block of 1024 threads leaves 64 to each.
  const std::string_view loops = "for k0 in N ( for i in N ( for j in N ( {}";
  EXPECT_EQ(Loops(*Plan(Tile(16, 8, 8, loops, 1024))), "k0! i! j");
  EXPECT_EQ(Loops(*Plan(Tile(16, 8, 8, loops, 256))), "k0! i* j*");
}

TEST(CudaUnroll, LoopsAroundOneThatStaysAreNotCopied) {
  const auto planned = Plan(
      "program(a: input float32[8, 4, 900], out: output float32[8, 4]) { stage s kernel k grid "
      "[1, 1, 1] block [8, 1, 1] { threadIdx.x t in 0..8 { unroll i in 0..4 { alloc acc: local "
      "float32[1] acc[0] = 0.0 @ s for k0 in 0..900 { acc[0] = acc[0] + a[t, i, k0] @ s } "
      "out[t, i] = acc[0] @ s } } } }");
  EXPECT_EQ(Loops(*planned), "i! k0/4");
}

// Each of the 64 copies would decide anew in each of its 24 steps.
TEST(CudaUnroll, ReductionsAroundGuardsStayLoopsInManyCopies) {
  const std::string_view guarded =
      "for i in N ( for j in N ( if t + j < 7 ( for k0 in N ( if t + i < 7 ( {}";
  EXPECT_EQ(Loops(*Plan(Tile(8, 8, 24, guarded))), "i* j* k0!");
  EXPECT_EQ(Loops(*Plan(Tile(2, 4, 24, guarded))), "i* j* k0");
  EXPECT_EQ(
      Loops(*Plan(Tile(8, 8, 8, "for i in N ( for j in N ( if t + j < 7 ( for k0 in N ( {}"))),
      "i* j* k0");
}

// The compiler would write out all of 64 x 24 steps, for it judges each copy by itself.
TEST(CudaUnroll, ReductionsStayLoopsInManyCopies) {
  const std::string_view loops = "for i in N ( for j in N ( if t < 7 ( for k0 in N ( {}";
  EXPECT_EQ(Loops(*Plan(Tile(8, 8, 24, loops))), "i* j* k0/4");
  EXPECT_EQ(Loops(*Plan(Tile(8, 8, 16, loops))), "i* j* k0");
}

TEST(CudaUnroll, WhatStandsBehindAConditionIsANestOfItsOwn) {
  const std::string_view loops = "for j in N ( if t < 7 ( for i in N ( for k0 in N ( {}";
  EXPECT_EQ(Loops(*Plan(Tile(4, 4, 96, loops))), "j* k0/4 i*");
  // All of it is written out in any order.
  EXPECT_EQ(Loops(*Plan(Tile(4, 4, 24, loops))), "j* i* k0");
}

TEST(CudaUnroll, MovesAreUnrolledByAFew) {
  const auto loops = [](int n) {
    const auto planned = Plan(fmt::format(
        "program(a: input float32[{0}, 8], out: output float32[{0}, 8]) {{ stage s kernel k grid "
        "[1, 1, 1] block [8, 1, 1] {{ threadIdx.x t in 0..8 {{ unroll i in 0..{0} {{ out[i, t] = "
        "a[i, t] @ s }} }} }} }}",
        n));
    return Loops(*planned);
  };
  EXPECT_EQ(loops(12), "i*");
  EXPECT_EQ(loops(48), "i/24");
  EXPECT_EQ(loops(181), "i/16");
}

// Interchanged or not: the same bits, and all in registers.
TEST(CudaUnroll, OrderKeepsEveryBit) {
  for (const std::string_view loops : {"for i in N ( for k0 in N ( for j in N ( {}",
                                       "unroll j in N ( for i in N ( for k0 in N ( {}",
                                       "for i in N ( unroll k0 in N ( unroll j in N ( {}"}) {
    SCOPED_TRACE(loops);
    ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(Tile(5, 6, 7, loops)));
    ASSERT_OK(CompareEmulated(program, 3, 1e-6));
    if (!FindNvrtc().ok()) continue;
    ASSERT_OK_AND_ASSIGN(const CudaSource source, GenerateCuda(program));
    ASSERT_OK_AND_ASSIGN(const Cubin cubin, CompileCubin(source.text, "sm_90"));
    EXPECT_EQ(cubin.kernels[0].stack_bytes, 0);
  }
}

// A running product over the tile itself, and elements that meet: order matters, nothing moves.
TEST(CudaUnroll, DependentIterationsKeepTheirOrder) {
  for (const std::string_view store :
       {"acc[i, j] = acc[i, j] + acc[j, i]*a[k0] @ s", "acc[i, i + j - i] = acc[i, j] + 1.0 @ s",
        "acc[(i + j) // 2, 0] = acc[(i + j) // 2, 0]*2.0 + a[k0] @ s"}) {
    const std::string text = fmt::format(
        "program(a: input float32[8], out: output float32[8, 4, 4]) {{ stage s kernel k grid [1, "
        "1, 1] block [8, 1, 1] {{ threadIdx.x t in 0..8 {{ alloc acc: local float32[4, 4] for i0 "
        "in 0..4 {{ for j0 in 0..4 {{ acc[i0, j0] = a[i0] @ s }} }} for i in 0..4 {{ for k0 in "
        "0..8 {{ for j in 0..4 {{ {} }} }} }} for i1 in 0..4 {{ for j1 in 0..4 {{ out[t, i1, j1] "
        "= acc[i1, j1] @ s }} }} }} }} }}",
        store);
    SCOPED_TRACE(text);
    EXPECT_EQ(Loops(*Plan(text)).substr(0, 2), "i*");
    ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(text));
    ASSERT_OK(CompareEmulated(program, 3, 1e-6));
  }
}

}  // namespace
}  // namespace kiln::codegen
