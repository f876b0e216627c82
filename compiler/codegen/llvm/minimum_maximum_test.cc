// Minimum and maximum of many terms: NaN wins, and -0 is less than +0, in whatever order and
// vectors the code takes the terms.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "base/status_testing.h"
#include "compiler/codegen/llvm/llvm.h"
#include "compiler/codegen/llvm/reference_testing.h"
#include "compiler/codegen/program_builder_testing.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::LoopKind;
using ir::Scope;
using ir::Stmt;

constexpr double kRanks[] = {-INFINITY, -2.5, -0x1p-140, -0.0, 0.0, 0x1p-140, 2.5, INFINITY};
constexpr int kNumRanks = 8;

target::Target Cpu(const std::string& name) {
  return {.kind = &target::kLlvm, .options = {{"mcpu", name}}};
}

bool SameNumber(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

size_t Count(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()));
}

// A program that reduces x[line, place] to y[line].
struct Reduction {
  ProgramBuilder builder;
  int64_t lines = 0, places = 0;
};

// One term after another into y. The terms of a line lie beside each other, so that LLVM computes
// the rows in vectors; with a stride they do not.
Reduction ByRows(ir::Op op, ir::Type type, int64_t places, int64_t stride, LoopKind kind) {
  Reduction made{.builder = {}, .lines = 97, .places = places};
  ProgramBuilder& b = made.builder;
  const int X = b.Buffer("x", Scope::kInput, {made.lines, places, stride}, type);
  const int Y = b.Buffer("y", Scope::kOutput, {made.lines}, type);
  const Expr line = b.Var("line", made.lines), k = b.Var("k", places);
  const double first = op == ir::Op::kMax ? -INFINITY : INFINITY;
  const Expr step = b.pool().Binary(op, b.Load(Y, {line}), b.Load(X, {line, k, b.Int(0)}));
  b.Kernel("rows", b.For(line, LoopKind::kSerial,
                         b.Seq({b.Store(Y, {line}, b.pool().Float(first, type)),
                                b.For(k, kind, b.Store(Y, {line}, step))})));
  return made;
}

// Accumulators of 37 lanes, which stay in registers where a local holds them.
Reduction ByColumns(ir::Op op, ir::Type type, int64_t places, LoopKind kind) {
  Reduction made{.builder = {}, .lines = 37, .places = places};
  ProgramBuilder& b = made.builder;
  const int X = b.Buffer("x", Scope::kInput, {places, made.lines}, type);
  const int Y = b.Buffer("y", Scope::kOutput, {made.lines}, type);
  const int best = b.Buffer("best", Scope::kLocal, {made.lines}, type);
  const Expr v = b.Var("v", made.lines), w = b.Var("w", made.lines), u = b.Var("u", made.lines);
  const Expr k = b.Var("k", places);
  const Expr first = b.pool().Float(op == ir::Op::kMax ? -INFINITY : INFINITY, type);
  const Expr step = b.pool().Binary(op, b.Load(X, {k, v}), b.Load(best, {v}));
  const Stmt body =
      b.Seq({b.For(w, LoopKind::kVectorized, b.Store(best, {w}, first)),
             b.For(k, kind, b.For(v, LoopKind::kVectorized, b.Store(best, {v}, step))),
             b.For(u, LoopKind::kVectorized, b.Store(Y, {u}, b.Load(best, {u})))});
  b.Kernel("columns", b.Alloc(best, body));
  return made;
}

// Partial results in 16 lanes, which are then reduced one by one.
Reduction ByLanes(ir::Op op, ir::Type type, int64_t steps) {
  constexpr int64_t kLanes = 16;
  Reduction made{.builder = {}, .lines = 97, .places = steps * kLanes};
  ProgramBuilder& b = made.builder;
  const int X = b.Buffer("x", Scope::kInput, {made.lines, made.places}, type);
  const int Y = b.Buffer("y", Scope::kOutput, {made.lines}, type);
  const int part = b.Buffer("part", Scope::kLocal, {kLanes}, type);
  const Expr line = b.Var("line", made.lines), k = b.Var("k", steps);
  const Expr v = b.Var("v", kLanes), w = b.Var("w", kLanes), l = b.Var("l", kLanes);
  const Expr first = b.pool().Float(op == ir::Op::kMax ? -INFINITY : INFINITY, type);
  const Expr x = b.Load(X, {line, b.Add(b.Mul(k, kLanes), v)});
  const Expr step = b.pool().Binary(op, b.Load(part, {v}), x);
  const Expr last = b.pool().Binary(op, b.Load(Y, {line}), b.Load(part, {l}));
  const Stmt body =
      b.Seq({b.For(w, LoopKind::kVectorized, b.Store(part, {w}, first)),
             b.For(k, LoopKind::kSerial, b.For(v, LoopKind::kVectorized, b.Store(part, {v}, step))),
             b.Store(Y, {line}, first), b.For(l, LoopKind::kUnrolled, b.Store(Y, {line}, last))});
  b.Kernel("lanes", b.For(line, LoopKind::kSerial, b.Alloc(part, body)));
  return made;
}

// Fills each line with numbers of neighbouring ranks, so that zeros of both signs often decide, and
// puts a NaN of either sign into a third of the lines.
void FillLines(const Reduction& made, bool by_columns, ir::NDArray& x) {
  std::mt19937 random(7);
  const int64_t stride = x.num_elements() / (made.lines * made.places);
  for (int64_t line = 0; line < made.lines; ++line) {
    const int least = static_cast<int>(random() % kNumRanks);
    const int count = 1 + static_cast<int>(random() % 3);
    const int64_t nan = random() % 3 == 0 ? static_cast<int64_t>(random()) % made.places : -1;
    const double sign = random() % 2 == 0 ? 1 : -1;
    for (int64_t k = 0; k < made.places; ++k) {
      const int rank = std::min(least + static_cast<int>(random()) % count, kNumRanks - 1);
      const int64_t at = by_columns ? k * made.lines + line : (line * made.places + k) * stride;
      x.SetDouble(at, k == nan ? std::copysign(NAN, sign) : kRanks[std::max(rank, 0)]);
    }
  }
}

void Check(const Reduction& made, bool by_columns, const std::string& what) {
  const ir::Program& program = made.builder.program();
  std::vector<ir::NDArray> args = MakeArguments(program, 1);
  FillLines(made, by_columns, args[0]);
  std::vector<ir::NDArray> expected = args;
  ASSERT_OK(RunReference(program, expected));
  for (const std::string cpu : {"native", "haswell", "x86-64"}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<ir::NDArray> actual,
                         RunCompiled(program, args, Cpu(cpu)));
    for (int64_t line = 0; line < made.lines; ++line) {
      ASSERT_TRUE(SameNumber(actual[1].GetDouble(line), expected[1].GetDouble(line)))
          << what << " of " << made.places << " on " << cpu << ", line " << line << ": "
          << actual[1].GetDouble(line) << ", expected " << expected[1].GetDouble(line);
    }
  }
}

TEST(MinimumMaximum, RowsOfSpecialValues) {
  for (const ir::Op op : {ir::Op::kMin, ir::Op::kMax}) {
    for (const ir::Type type : {ir::kFloat32, ir::kFloat64, ir::kFloat16}) {
      const std::string name =
          (op == ir::Op::kMin ? "min " : "max ") + std::string(ir::TypeName(type));
      Check(ByRows(op, type, 75, 1, LoopKind::kSerial), false, name + " of rows");
      Check(ByRows(op, type, 5, 3, LoopKind::kUnrolled), false, name + " of unrolled rows");
      Check(ByRows(op, type, 19, 3, LoopKind::kUnrolled), false, name + " of gathered rows");
      Check(ByLanes(op, type, 5), false, name + " of lanes");
    }
  }
}

TEST(MinimumMaximum, ColumnsOfSpecialValues) {
  for (const ir::Op op : {ir::Op::kMin, ir::Op::kMax}) {
    for (const ir::Type type : {ir::kFloat32, ir::kFloat64, ir::kFloat16}) {
      const std::string name =
          (op == ir::Op::kMin ? "min " : "max ") + std::string(ir::TypeName(type));
      Check(ByColumns(op, type, 21, LoopKind::kSerial), true, name + " of columns");
      for (const int64_t places : {2, 3, 8})
        Check(ByColumns(op, type, places, LoopKind::kUnrolled), true, name + " of few columns");
    }
  }
}

// A term costs one instruction that reads it from memory, and half a comparison. No term waits in
// a register or on the stack.
TEST(MinimumMaximum, ManyTermsAreReadByTheInstruction) {
  for (const auto& [cpu, width] : {std::pair("skylake-avx512", 16), std::pair("haswell", 8)}) {
    ProgramBuilder b;
    const int X = b.Buffer("x", Scope::kInput, {65, width});
    const int Y = b.Buffer("y", Scope::kOutput, {width});
    const Expr v = b.Var("v", width);
    Expr all = b.Load(X, {b.Int(0), v});
    for (int64_t i = 1; i < 65; ++i) all = b.pool().Max(all, b.Load(X, {b.Int(i), v}));
    b.Kernel("terms", b.For(v, LoopKind::kVectorized, b.Store(Y, {v}, all)));
    ASSERT_OK_AND_ASSIGN(const std::string assembly, PrintAssembly(b.program(), Cpu(cpu)));
    EXPECT_EQ(Count(assembly, "vmaxps[^\n]*\\(%r"), 64u) << assembly;
    EXPECT_EQ(Count(assembly, "vcmp[a-z]*ps"), 32u) << assembly;
    EXPECT_EQ(Count(assembly, "\\(%rsp\\)"), 0u) << assembly;
  }
}

// Two gathers of eight lanes read a term of sixteen, often from the same cache lines. LLVM's model
// of this processor would move all 128 gathers above the first minimum.
TEST(MinimumMaximum, GathersStayInTheirOrder) {
  const Reduction made = ByRows(ir::Op::kMin, ir::kFloat32, 64, 128, LoopKind::kUnrolled);
  ASSERT_OK_AND_ASSIGN(const std::string assembly,
                       PrintAssembly(made.builder.program(), Cpu("sapphirerapids")));
  ASSERT_GE(Count(assembly, "vgather[a-z]*ps"), 128u) << assembly;
  const std::string until_first = assembly.substr(0, assembly.find("vminps"));
  EXPECT_LE(Count(until_first, "vgather[a-z]*ps"), 16u) << assembly;
}

// Halves of a vector are combined, not one element after another.
TEST(MinimumMaximum, LanesAreReducedInFewSteps) {
  const Reduction made = ByLanes(ir::Op::kMax, ir::kFloat32, 40);
  ASSERT_OK_AND_ASSIGN(const std::string assembly,
                       PrintAssembly(made.builder.program(), Cpu("skylake-avx512")));
  EXPECT_EQ(Count(assembly, "vmaxss"), 0u) << assembly;
  EXPECT_EQ(Count(assembly, "vmaxps[^\n]*[xy]mm[0-9]+\n"), 4u) << assembly;
}

}  // namespace
}  // namespace kiln::codegen
