#include "compiler/codegen/llvm/llvm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <regex>
#include <sstream>

#include "base/status_testing.h"
#include "compiler/codegen/llvm/loaded_program_testing.h"
#include "compiler/codegen/llvm/reference_testing.h"
#include "compiler/codegen/matmul_testing.h"
#include "compiler/codegen/program_builder_testing.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::LoopKind;
using ir::Scope;
using ir::Stmt;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

target::Target Cpu(const std::string& name) {
  return {.kind = &target::kLlvm, .options = {{"mcpu", name}}};
}

// Copies y[v] = x[v] in one loop of a kind.
ProgramBuilder MakeCopy(LoopKind kind, int64_t extent, ir::Type type = ir::kFloat32) {
  ProgramBuilder b;
  const int X = b.Buffer("x", Scope::kInput, {extent}, type);
  const int Y = b.Buffer("y", Scope::kOutput, {extent}, type);
  const Expr v = b.Var("v", extent);
  b.Kernel("copy", b.For(v, kind, b.Store(Y, {v}, b.Load(X, {v}))));
  return b;
}

size_t Count(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()));
}

// Returns the basic block with the most multiply-adds, from its label to its jump: the inner loop.
std::string InnerLoop(const std::string& assembly) {
  std::string best, block;
  std::istringstream lines(assembly);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(".LBB", 0) == 0) block.clear();
    block += line + '\n';
    if (line.rfind("\tj", 0) != 0) continue;
    if (Count(block, "vfmadd") > Count(best, "vfmadd")) best = block;
    block.clear();
  }
  return best;
}

TEST(LlvmTest, EveryLoopKindAndType) {
  for (const LoopKind kind : {LoopKind::kSerial, LoopKind::kParallel, LoopKind::kVectorized,
                              LoopKind::kUnrolled, LoopKind::kVThread}) {
    for (const ir::Type type : {ir::kFloat32, ir::kFloat64, ir::kFloat16, ir::kBFloat16,
                                ir::kFloat8E4M3, ir::kFloat8E5M2, ir::kInt8, ir::kInt16, ir::kInt32,
                                ir::kInt64, ir::kUInt8, ir::kUInt16, ir::kUInt32, ir::kBool}) {
      for (const int64_t extent : {1, 7, 100, 1000}) {
        const Status status = CompareWithReference(MakeCopy(kind, extent, type).program(), 3, 0);
        EXPECT_TRUE(status.ok()) << ir::LoopKindName(kind) << " " << ir::TypeName(type) << " "
                                 << extent << ": " << status;
      }
    }
  }
}

// All values of 16 bits, in vectors with a remainder.
TEST(LlvmTest, EveryHalfRoundsToFloat8AndBack) {
  for (const std::string cpu : {"native", "x86-64"}) {
    for (const ir::Type type : {ir::kFloat8E4M3, ir::kFloat8E5M2}) {
      constexpr int64_t kSize = 65536;
      ProgramBuilder b;
      const int X = b.Buffer("x", Scope::kInput, {kSize}, ir::kFloat16);
      const int Y = b.Buffer("y", Scope::kOutput, {kSize}, type);
      const int Z = b.Buffer("z", Scope::kOutput, {kSize}, ir::kFloat32);
      const Expr v = b.Var("v", kSize), w = b.Var("w", kSize);
      b.Kernel("round", b.For(v, LoopKind::kVectorized,
                              b.Store(Y, {v}, b.pool().Cast(type, b.Load(X, {v})))));
      b.Kernel("widen", b.For(w, LoopKind::kVectorized,
                              b.Store(Z, {w}, b.pool().Cast(ir::kFloat32, b.Load(Y, {w})))));
      std::vector<ir::NDArray> args = MakeArguments(b.program(), 1);
      for (uint32_t i = 0; i < kSize; ++i) {
        const auto bits = static_cast<uint16_t>(i);
        std::memcpy(args[0].mutable_bytes().data() + 2 * i, &bits, 2);
      }
      ASSERT_OK_AND_ASSIGN(const std::vector<ir::NDArray> actual,
                           RunCompiled(b.program(), args, Cpu(cpu)));
      ASSERT_OK(RunReference(b.program(), args));
      for (int64_t i = 0; i < kSize; ++i) {
        const double got = actual[2].GetDouble(i), want = args[2].GetDouble(i);
        ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
            << cpu << " " << ir::TypeName(type) << " of " << args[0].GetDouble(i) << ": " << got
            << ", expected " << want;
        ASSERT_TRUE(std::signbit(got) == std::signbit(want) || std::isnan(want))
            << args[0].GetDouble(i);
      }
    }
  }
}

TEST(LlvmTest, ConversionsRoundToNearestEven) {
  const std::vector<ir::Type> types = {ir::kFloat32, ir::kFloat64,    ir::kFloat16,   ir::kBFloat16,
                                       ir::kInt8,    ir::kInt32,      ir::kInt64,     ir::kBool,
                                       ir::kInt16,   ir::kUInt8,      ir::kUInt16,    ir::kUInt32,
                                       ir::kUInt64,  ir::kFloat8E4M3, ir::kFloat8E5M2};
  std::mt19937_64 rng(5);
  for (const std::string cpu : {"native", "x86-64"}) {
    for (const ir::Type from : types) {
      for (const ir::Type to : types) {
        ProgramBuilder b;
        constexpr int64_t kSize = 500;
        const int X = b.Buffer("x", Scope::kInput, {kSize}, from);
        const int Y = b.Buffer("y", Scope::kOutput, {kSize}, to);
        const Expr v = b.Var("v", kSize);
        b.Kernel("cast", b.For(v, LoopKind::kVectorized,
                               b.Store(Y, {v}, b.pool().Cast(to, b.Load(X, {v})))));
        std::vector<ir::NDArray> args = MakeArguments(b.program(), 1);
        for (int64_t i = 0; i < kSize; ++i) {
          const double mantissa = 1 + static_cast<double>(rng() % (1 << 20)) / (1 << 20);
          // From float to int, only values that fit. Otherwise all magnitudes, denormals and
          // overflow included.
          const int range = from.is_float() && !to.is_float() ? 6 : 50;
          const int exponent =
              static_cast<int>(rng() % static_cast<uint64_t>(range)) - (range == 6 ? 0 : 30);
          const bool positive = rng() % 2 || (from.is_float() && to.is_unsigned());
          args[0].SetDouble(i, std::ldexp(positive ? mantissa : -mantissa, exponent));
        }
        ASSERT_OK_AND_ASSIGN(const std::vector<ir::NDArray> actual,
                             RunCompiled(b.program(), args, Cpu(cpu)));
        ASSERT_OK(RunReference(b.program(), args));
        for (int64_t i = 0; i < kSize; ++i) {
          ASSERT_EQ(actual[1].GetDouble(i), args[1].GetDouble(i))
              << cpu << " " << ir::TypeName(from) << " -> " << ir::TypeName(to) << " of "
              << args[0].GetDouble(i);
        }
      }
    }
  }
}

// A uint64 with its highest bit set is a large number, and kReinterpret keeps the bits of a value.
TEST(LlvmTest, LargeUnsignedNumbersAndBits) {
  constexpr int64_t kSize = 64;
  const std::vector<std::pair<ir::Type, ir::Type>> bits = {
      {ir::kFloat32, ir::kInt32},   {ir::kUInt32, ir::kFloat32},   {ir::kFloat64, ir::kUInt64},
      {ir::kInt64, ir::kFloat64},   {ir::kFloat16, ir::kUInt16},   {ir::kInt16, ir::kBFloat16},
      {ir::kBFloat16, ir::kInt16},  {ir::kFloat8E4M3, ir::kUInt8}, {ir::kUInt8, ir::kFloat8E4M3},
      {ir::kFloat16, ir::kBFloat16}};
  for (const LoopKind kind : {LoopKind::kVectorized, LoopKind::kSerial}) {
    for (const std::string cpu : {"native", "haswell", "x86-64"}) {
      ProgramBuilder b;
      const int X = b.Buffer("x", Scope::kInput, {kSize}, ir::kUInt64);
      const int Y = b.Buffer("y", Scope::kInput, {kSize}, ir::kUInt64);
      const int Z = b.Buffer("z", Scope::kOutput, {9, kSize}, ir::kUInt64);
      std::vector<Stmt> rows;
      const auto value = [&](auto&& make) {
        const Expr v = b.Var("v" + std::to_string(rows.size()), kSize);
        const Expr row = b.Int(static_cast<int64_t>(rows.size()));
        rows.push_back(b.For(v, kind, b.Store(Z, {row, v}, make(b.Load(X, {v}), b.Load(Y, {v})))));
      };
      ir::ExprPool& pool = b.pool();
      const Expr one = pool.Int(1, ir::kUInt64);
      value([&](Expr x, Expr y) { return pool.Max(x, y); });
      value([&](Expr x, Expr y) { return pool.Min(x, y); });
      value([&](Expr x, Expr y) { return pool.FloorDiv(x, pool.Max(y, one)); });
      value([&](Expr x, Expr y) { return pool.FloorMod(x, pool.Max(y, one)); });
      value([&](Expr x, Expr) { return pool.FloorDiv(x, pool.Int(10, ir::kUInt64)); });
      value([&](Expr x, Expr) { return pool.FloorDiv(x, pool.Int(-3, ir::kUInt64)); });
      value([&](Expr x, Expr) { return pool.Binary(ir::Op::kShr, x, pool.Int(9, ir::kUInt64)); });
      value([&](Expr x, Expr y) { return pool.Select(pool.Lt(x, y), x, one); });
      value([&](Expr x, Expr y) { return pool.Select(pool.Ge(x, y), x, one); });
      b.Kernel("large", b.Seq(rows));
      std::vector<ir::NDArray> args = MakeArguments(b.program(), 1);
      std::mt19937_64 rng(7);
      for (int64_t i = 0; i < 2 * kSize; ++i) {
        args[static_cast<size_t>(i % 2)].Set(
            i / 2, ir::Value::Int(static_cast<int64_t>(rng() >> (i / 8 % 4 * 20))));
      }
      ASSERT_OK_AND_ASSIGN(const auto actual, RunCompiled(b.program(), args, Cpu(cpu)));
      ASSERT_OK(RunReference(b.program(), args));
      EXPECT_EQ(actual[2], args[2]) << cpu;
      for (const auto& [from, to] : bits) {
        ProgramBuilder c;
        const int A = c.Buffer("a", Scope::kInput, {kSize}, from);
        const int B = c.Buffer("b", Scope::kOutput, {kSize}, to);
        const Expr v = c.Var("v", kSize);
        c.Kernel("bits", c.For(v, kind, c.Store(B, {v}, c.pool().Reinterpret(to, c.Load(A, {v})))));
        std::vector<ir::NDArray> values = MakeArguments(c.program(), 1);
        ASSERT_OK_AND_ASSIGN(const auto found, RunCompiled(c.program(), values, Cpu(cpu)));
        ASSERT_OK(RunReference(c.program(), values));
        // The bits of a NaN are not fixed.
        SCOPED_TRACE(cpu + " " + std::string(ir::TypeName(from)));
        EXPECT_OK(ir::Compare(found[1], values[1], {}, ir::TypeName(to)));
      }
    }
  }
}

// Zeros of both signs, infinities, NaN, denormals of float32, numbers that no int type holds, and
// numbers at the ends of the int types' ranges.
constexpr double kSpecial[] = {
    0.0,          -0.0,         1.0,    -1.0,   6.0,     -6.5,    0x1p-140, -0x1p-140,
    INFINITY,     -INFINITY,    NAN,    -NAN,   127.5,   -128,    128,      -129,
    255,          256,          32767,  -32769, 65536,   -0.75,   0x1p31,   -0x1p31,
    2147483520.0, 4294967040.0, 0x1p32, 0x1p63, -0x1p63, -0x1p64, 1e30,     -1e30};
constexpr auto kNumSpecial = static_cast<int64_t>(std::size(kSpecial));

bool SameNumber(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

// Tests every pair of the values, and each value with a constant, in vectors and one by one.
TEST(LlvmTest, MinimumAndMaximumOfSpecialValues) {
  constexpr double kConstants[] = {0.0, -0.0, 6.0, -6.0, INFINITY, -INFINITY};
  constexpr auto kColumns = static_cast<int64_t>(2 + 2 * std::size(kConstants));
  constexpr int64_t kSize = kNumSpecial * kNumSpecial;
  for (const std::string cpu : {"native", "haswell", "x86-64"}) {
    for (const ir::Type type : {ir::kFloat32, ir::kFloat64, ir::kFloat16, ir::kBFloat16}) {
      for (const LoopKind kind : {LoopKind::kVectorized, LoopKind::kSerial}) {
        ProgramBuilder b;
        const int X = b.Buffer("x", Scope::kInput, {kSize}, type);
        const int Y = b.Buffer("y", Scope::kInput, {kSize}, type);
        const int Z = b.Buffer("z", Scope::kOutput, {kColumns, kSize}, type);
        std::vector<Stmt> rows;
        const auto add = [&](ir::Op op, double constant, bool has_constant) {
          const Expr v = b.Var("v" + std::to_string(rows.size()), kSize);
          const Expr right = has_constant ? b.pool().Float(constant, type) : b.Load(Y, {v});
          const Expr row = b.Int(static_cast<int64_t>(rows.size()));
          const Expr value = b.pool().Binary(op, b.Load(X, {v}), right);
          rows.push_back(b.For(v, kind, b.Store(Z, {row, v}, value)));
        };
        for (const ir::Op op : {ir::Op::kMin, ir::Op::kMax}) {
          add(op, 0, false);
          for (const double constant : kConstants) add(op, constant, true);
        }
        b.Kernel("extremes", b.Seq(rows));
        std::vector<ir::NDArray> args = MakeArguments(b.program(), 1);
        for (int64_t i = 0; i < kSize; ++i) {
          args[0].SetDouble(i, kSpecial[i / kNumSpecial]);
          args[1].SetDouble(i, kSpecial[i % kNumSpecial]);
        }
        ASSERT_OK_AND_ASSIGN(const std::vector<ir::NDArray> actual,
                             RunCompiled(b.program(), args, Cpu(cpu)));
        ASSERT_OK(RunReference(b.program(), args));
        for (int64_t i = 0; i < kColumns * kSize; ++i) {
          ASSERT_TRUE(SameNumber(actual[2].GetDouble(i), args[2].GetDouble(i)))
              << cpu << " " << ir::TypeName(type) << " " << ir::LoopKindName(kind) << ", row "
              << i / kSize << " of " << args[0].GetDouble(i % kSize) << " and "
              << args[1].GetDouble(i % kSize) << ": " << actual[2].GetDouble(i) << ", expected "
              << args[2].GetDouble(i);
        }
      }
    }
  }
}

// Values that do not fit saturate, and NaN gives 0.
TEST(LlvmTest, SpecialValuesToIntegersAndNarrowFloats) {
  for (const std::string cpu : {"native", "x86-64"}) {
    for (const ir::Type from : {ir::kFloat32, ir::kFloat64, ir::kFloat16, ir::kBFloat16}) {
      for (const ir::Type to :
           {ir::kInt8, ir::kInt16, ir::kInt32, ir::kInt64, ir::kUInt8, ir::kUInt16, ir::kUInt32,
            ir::kBool, ir::kFloat16, ir::kBFloat16, ir::kFloat8E4M3, ir::kFloat8E5M2}) {
        for (const LoopKind kind : {LoopKind::kVectorized, LoopKind::kSerial}) {
          ProgramBuilder b;
          const int X = b.Buffer("x", Scope::kInput, {kNumSpecial}, from);
          const int Y = b.Buffer("y", Scope::kOutput, {kNumSpecial}, to);
          const Expr v = b.Var("v", kNumSpecial);
          b.Kernel("cast", b.For(v, kind, b.Store(Y, {v}, b.pool().Cast(to, b.Load(X, {v})))));
          std::vector<ir::NDArray> args = MakeArguments(b.program(), 1);
          for (int64_t i = 0; i < kNumSpecial; ++i) args[0].SetDouble(i, kSpecial[i]);
          ASSERT_OK_AND_ASSIGN(const std::vector<ir::NDArray> actual,
                               RunCompiled(b.program(), args, Cpu(cpu)));
          ASSERT_OK(RunReference(b.program(), args));
          for (int64_t i = 0; i < kNumSpecial; ++i) {
            ASSERT_TRUE(SameNumber(actual[1].GetDouble(i), args[1].GetDouble(i)))
                << cpu << " " << ir::TypeName(from) << " -> " << ir::TypeName(to) << " of "
                << args[0].GetDouble(i) << ": " << actual[1].GetDouble(i) << ", expected "
                << args[1].GetDouble(i);
          }
        }
      }
    }
  }
}

// LLVM reorders the terms of a maximum, whose value does not depend on the order. A NaN is found by
// comparisons beside the maximum.
TEST(LlvmTest, TheMaximumOfARowIsComputedInVectors) {
  ProgramBuilder b;
  const int X = b.Buffer("x", Scope::kInput, {4096});
  const int Y = b.Buffer("y", Scope::kOutput, {1});
  const Expr k = b.Var("k", 4096);
  const Expr zero = b.Int(0);
  b.Kernel("row",
           b.Seq({b.Store(Y, {zero}, b.pool().Float(-INFINITY)),
                  b.For(k, LoopKind::kSerial,
                        b.Store(Y, {zero}, b.pool().Max(b.Load(Y, {zero}), b.Load(X, {k}))))}));
  EXPECT_OK(CompareWithReference(b.program(), 1, 0));
  ASSERT_OK_AND_ASSIGN(const std::string assembly, PrintAssembly(b.program(), Cpu("haswell")));
  EXPECT_GE(Count(assembly, "vmaxps[^\n]*ymm"), 8u) << assembly;
  EXPECT_GE(Count(assembly, "vcmpordps[^\n]*ymm"), 4u) << assembly;
}

// Gathers of a column take longer than its loads, one by one.
TEST(LlvmTest, TheMinimumOfAColumnIsNotGathered) {
  ProgramBuilder b;
  const int X = b.Buffer("x", Scope::kInput, {512, 128});
  const int Y = b.Buffer("y", Scope::kOutput, {1});
  const Expr k = b.Var("k", 512);
  const Expr zero = b.Int(0);
  b.Kernel(
      "column",
      b.Seq({b.Store(Y, {zero}, b.pool().Float(INFINITY)),
             b.For(k, LoopKind::kSerial,
                   b.Store(Y, {zero}, b.pool().Min(b.Load(Y, {zero}), b.Load(X, {k, zero}))))}));
  EXPECT_OK(CompareWithReference(b.program(), 1, 0));
  ASSERT_OK_AND_ASSIGN(const std::string assembly,
                       PrintAssembly(b.program(), Cpu("skylake-avx512")));
  EXPECT_EQ(Count(assembly, "vgather"), 0u) << assembly;
  EXPECT_GE(Count(assembly, "vminss"), 1u) << assembly;
}

// The way to a value behind a step's conditions doubles with each step, and LLVM's vectorizer would
// follow all of them for hours.
TEST(LlvmTest, AnUnrolledArgmaxIsCompiled) {
  constexpr int kSize = 5;
  ProgramBuilder b;
  const int X = b.Buffer("x", Scope::kInput, {kSize, kSize});
  const int Y = b.Buffer("y", Scope::kOutput, {kSize}, ir::kInt64);
  const int best = b.Buffer("best", Scope::kLocal, {kSize});
  const int place = b.Buffer("place", Scope::kLocal, {kSize}, ir::kInt64);
  ir::ExprPool& pool = b.pool();
  const Expr j = b.Var("j", kSize), to = b.Var("to", kSize);
  const Expr row = b.Var("row", kSize), column = b.Var("column", kSize);
  const Expr at = b.Add(j, column);
  const Expr inside = pool.And(pool.Ge(at, b.Int(2)), pool.Lt(at, b.Int(kSize + 2)));
  const Expr x = pool.If(inside, b.Load(X, {row, pool.Sub(at, b.Int(2))}), pool.Float(-INFINITY));
  const Expr here = b.Add(b.Mul(row, kSize), at);
  const Expr old = b.Load(best, {j}), old_place = b.Load(place, {j});
  const Expr is_no_worse = pool.Not(pool.Lt(x, old)), is_better = pool.Binary(ir::Op::kGt, x, old);
  const Expr is_nan = pool.Binary(ir::Op::kNe, x, x);
  const Expr takes_tie =
      pool.And(pool.Or(pool.Eq(x, old), is_nan),
               pool.Or(pool.Lt(here, old_place), pool.And(is_nan, pool.Eq(old, old))));
  const Expr takes = pool.And(is_no_worse, pool.Or(is_better, takes_tie));
  const Expr takes_value = pool.And(is_no_worse, pool.Or(is_better, is_nan));
  const Stmt step = b.Seq({b.Store(place, {j}, pool.Select(takes, here, old_place)),
                           b.Store(best, {j}, pool.Select(takes_value, x, old))});
  const Stmt window = b.For(row, LoopKind::kUnrolled, b.For(column, LoopKind::kUnrolled, step));
  const Stmt first =
      b.Seq({b.Store(place, {j}, b.Int(kSize * kSize)), b.Store(best, {j}, pool.Float(-INFINITY))});
  const Stmt body =
      b.Seq({b.For(j, LoopKind::kSerial, b.Seq({first, window})),
             b.For(to, LoopKind::kVectorized, b.Store(Y, {to}, b.Load(place, {to})))});
  b.Kernel("argmax", b.Alloc(best, b.Alloc(place, body)));
  EXPECT_OK(CompareWithReference(b.program(), 1, 0));
}

TEST(LlvmTest, ReluIsAMaximumAndAnAnd) {
  ProgramBuilder b;
  const int X = b.Buffer("x", Scope::kInput, {64});
  const int Y = b.Buffer("y", Scope::kOutput, {64});
  const Expr v = b.Var("v", 64);
  b.Kernel("relu", b.For(v, LoopKind::kVectorized,
                         b.Store(Y, {v}, b.pool().Max(b.Load(X, {v}), b.pool().Float(0)))));
  ASSERT_OK_AND_ASSIGN(const std::string assembly, PrintAssembly(b.program(), Cpu("haswell")));
  EXPECT_EQ(Count(assembly, "vmaxps"), 8u) << assembly;
  EXPECT_EQ(Count(assembly, "vandps|vandnps"), 8u) << assembly;
  EXPECT_EQ(Count(assembly, "vblend|vcmp"), 0u) << assembly;
}

TEST(LlvmTest, TiledMatmul) {
  for (const bool local : {true, false}) {
    for (const int64_t tile_n : {1, 5, 7, 16, 28, 32, 48, 80}) {
      const MatmulTiles tiles{.m = 12,
                              .n = 2 * tile_n,
                              .k = 9,
                              .tile_m = 6,
                              .tile_n = tile_n,
                              .local = local,
                              .outer = LoopKind::kParallel};
      EXPECT_OK(CompareWithReference(MakeTiledMatmul(tiles).builder.program(), 1, 0));
    }
  }
}

// There is one multiply-add per vector, with a broadcast operand or a broadcast per row. No
// register is stored or spilled.
TEST(LlvmTest, InnerLoopOfMatmulStaysInRegisters) {
  for (const bool local : {true, false}) {
    for (const auto& [tile_m, tile_n] :
         {std::pair<int64_t, int64_t>{6, 32}, {7, 16}, {6, 64}, {14, 16}}) {
      const MatmulTiles tiles{.m = tile_m * 4,
                              .n = tile_n * 4,
                              .k = 1024,
                              .tile_m = tile_m,
                              .tile_n = tile_n,
                              .local = local};
      ASSERT_OK_AND_ASSIGN(
          const std::string assembly,
          PrintAssembly(MakeTiledMatmul(tiles).builder.program(), Cpu("skylake-avx512")));
      const std::string loop = InnerLoop(assembly);
      const size_t per_step = static_cast<size_t>(tile_m * tile_n / 16);
      EXPECT_EQ(Count(loop, "vfmadd[^\n]*zmm") % per_step, 0u) << loop;
      EXPECT_GE(Count(loop, "vfmadd[^\n]*zmm"), per_step) << loop;
      EXPECT_EQ(Count(loop, "\\(%r[sb]p"), 0u) << loop;
      // A store in AT&T syntax.
      EXPECT_EQ(Count(loop, "vmov[^\n]*zmm[0-9]+, *[^%\n]*\\("), 0u) << loop;
      EXPECT_EQ(Count(loop, "vadd|vmul|vperm|vinsert|vshuf"), 0u) << loop;
    }
  }
}

// A packed input gets a prefetch for each of its vectors, once for all rows of the tile, in the
// addressing of the load. The same input without packing gets none.
TEST(LlvmTest, PrefetchesPackedInputs) {
  const MatmulTiles tiles{.m = 24, .n = 64, .k = 1024, .tile_m = 6, .tile_n = 32, .local = true};
  MatmulProgram made = MakeTiledMatmul(tiles);
  ir::Program program = made.builder.program();
  ASSERT_OK_AND_ASSIGN(const std::string plain, PrintAssembly(program, Cpu("skylake-avx512")));
  EXPECT_THAT(plain, Not(HasSubstr("prefetch")));
  program.buffers[1].packing =
      Packing{.shape = {1024, 64}, .dims = {{1, 2, 32}, {0, 1024, 1}, {1, 32, 1}}};
  ASSERT_OK_AND_ASSIGN(const std::string packed, PrintAssembly(program, Cpu("skylake-avx512")));
  const std::string loop = InnerLoop(packed);
  EXPECT_EQ(Count(loop, "prefetcht1[^\n]*\\("), Count(loop, "vfmadd[^\n]*zmm") / 6) << loop;
  EXPECT_OK(CompareWithReference(program, 1, 0));
}

// Sums that are stored 8 lanes wide and read 16 wide behind the loop stay registers of 8 lanes.
TEST(LlvmTest, SumsReadInWiderVectorsStayInRegisters) {
  constexpr int64_t kRows = 6, kHalves = 2, kLanes = 8, kSteps = 64;
  ProgramBuilder b;
  const int A = b.Buffer("A", Scope::kInput, {kSteps, kRows});
  const int B = b.Buffer("B", Scope::kInput, {kSteps, kHalves, kLanes});
  const int C = b.Buffer("C", Scope::kOutput, {kRows, kHalves * kLanes});
  const int S = b.Buffer("S", Scope::kLocal, {kRows, kHalves, kLanes});
  const Expr i0 = b.Var("i.0", kRows), h0 = b.Var("h.0", kHalves), v0 = b.Var("v.0", kLanes),
             k = b.Var("k", kSteps), i = b.Var("i", kRows), h = b.Var("h", kHalves),
             v = b.Var("v", kLanes), i1 = b.Var("i.1", kRows), w = b.Var("w", kHalves * kLanes);
  const auto tile = [&](Expr row, Expr half, Expr lane, Stmt body) {
    return b.For(row, LoopKind::kUnrolled,
                 b.For(half, LoopKind::kUnrolled, b.For(lane, LoopKind::kVectorized, body)));
  };
  const Stmt init = tile(i0, h0, v0, b.Store(S, {i0, h0, v0}, b.pool().Float(0)));
  const Stmt update =
      tile(i, h, v, b.Accumulate(S, {i, h, v}, b.Mul(b.Load(A, {k, i}), b.Load(B, {k, h, v}))));
  const Expr read =
      b.Load(S, {i1, b.pool().FloorDiv(w, b.Int(kLanes)), b.pool().FloorMod(w, b.Int(kLanes))});
  const Stmt out = b.For(
      i1, LoopKind::kUnrolled,
      b.For(w, LoopKind::kVectorized, b.Store(C, {i1, w}, b.pool().Max(read, b.pool().Float(0)))));
  b.Kernel("sums", b.Alloc(S, b.Seq({init, b.For(k, LoopKind::kSerial, update), out})));
  EXPECT_OK(CompareWithReference(b.program(), 1, 0));
  ASSERT_OK_AND_ASSIGN(const std::string assembly,
                       PrintAssembly(b.program(), Cpu("skylake-avx512")));
  const std::string loop = InnerLoop(assembly);
  EXPECT_GE(Count(loop, "vfmadd[^\n]*ymm"), static_cast<size_t>(kRows * kHalves)) << loop;
  EXPECT_EQ(Count(loop, "vinsert|vextract|zmm"), 0u) << loop;
}

// C[i, j] += A[i, k] * B[j, k] with vectors over j: lanes are a row apart. k is `outer` times
// `inner`.
ProgramBuilder MakeRowProducts(int64_t lanes, LoopKind inner_kind, int64_t inner) {
  constexpr int64_t kRows = 4, kOuter = 12;
  ProgramBuilder b;
  const int A = b.Buffer("A", Scope::kInput, {kRows, kOuter * inner});
  const int B = b.Buffer("B", Scope::kInput, {lanes, kOuter * inner});
  const int C = b.Buffer("C", Scope::kOutput, {kRows, lanes});
  const Expr i0 = b.Var("i.0", kRows), v0 = b.Var("j.0", lanes), ko = b.Var("k.0", kOuter),
             i = b.Var("i", kRows), ki = b.Var("k.1", inner), v = b.Var("j", lanes);
  const Expr k = b.Add(b.Mul(ko, inner), ki);
  const Stmt init =
      b.For(i0, LoopKind::kUnrolled,
            b.For(v0, LoopKind::kVectorized, b.Store(C, {i0, v0}, b.pool().Float(0))));
  const Stmt update = b.Accumulate(C, {i, v}, b.Mul(b.Load(A, {i, k}), b.Load(B, {v, k})));
  const Stmt tile =
      b.For(i, LoopKind::kUnrolled, b.For(ki, inner_kind, b.For(v, LoopKind::kVectorized, update)));
  b.Kernel("rows", b.Seq({init, b.For(ko, LoopKind::kSerial, tile)}));
  return b;
}

TEST(LlvmTest, RowsApartAreLoadedAsTheyLieAndTransposed) {
  for (const LoopKind kind : {LoopKind::kSerial, LoopKind::kUnrolled}) {
    for (const int64_t lanes : {4, 7, 16, 24, 28, 48, 64}) {
      for (const int64_t inner : {1, 4, 6, 8}) {
        const ProgramBuilder b = MakeRowProducts(lanes, kind, inner);
        const Status status = CompareWithReference(b.program(), 1, 0);
        EXPECT_TRUE(status.ok()) << lanes << " lanes, " << inner << " inside: " << status;
      }
    }
    const ProgramBuilder b = MakeRowProducts(16, kind, 4);
    ASSERT_OK_AND_ASSIGN(const std::string assembly,
                         PrintAssembly(b.program(), Cpu("skylake-avx512")));
    const std::string loop = InnerLoop(assembly);
    EXPECT_EQ(Count(loop, "vfmadd[^\n]*zmm") % 16, 0u) << loop;
    EXPECT_EQ(Count(loop, "vinsertps"), 0u) << loop;
  }
}

// 600 multiply-adds of 4 registers each make too long a body, so the outer loop stays.
TEST(LlvmTest, UnrolledLoopsAreBoundedInRegisters) {
  ProgramBuilder b;
  const int X = b.Buffer("x", Scope::kInput, {60, 10, 64});
  const int Y = b.Buffer("y", Scope::kOutput, {64});
  const Expr k = b.Var("k", 60), l = b.Var("l", 10), v = b.Var("v", 64), w = b.Var("w", 64);
  const Stmt init = b.For(w, LoopKind::kVectorized, b.Store(Y, {w}, b.pool().Float(0)));
  const Stmt add = b.Accumulate(Y, {v}, b.Mul(b.Load(X, {k, l, v}), b.Load(X, {k, b.Int(0), v})));
  b.Kernel(
      "sum",
      b.Seq({init, b.For(k, LoopKind::kUnrolled,
                         b.For(l, LoopKind::kUnrolled, b.For(v, LoopKind::kVectorized, add)))}));
  EXPECT_OK(CompareWithReference(b.program(), 1, 0));
  ASSERT_OK_AND_ASSIGN(const std::string assembly,
                       PrintAssembly(b.program(), Cpu("skylake-avx512")));
  EXPECT_GE(Count(assembly, "vfmadd"), 40u);
  EXPECT_LE(Count(assembly, "vfmadd"), 400u);
}

TEST(LlvmTest, ReductionVariableMayBeVectorized) {
  ProgramBuilder b;
  const int X = b.Buffer("x", Scope::kInput, {100});
  const int Y = b.Buffer("y", Scope::kOutput, {1});
  const Expr v = b.Var("v", 100);
  b.Kernel("sum",
           b.Seq({b.Store(Y, {b.Int(0)}, b.pool().Float(0)),
                  b.For(v, LoopKind::kVectorized, b.Accumulate(Y, {b.Int(0)}, b.Load(X, {v})))}));
  EXPECT_OK(CompareWithReference(b.program(), 1, 0));
}

// A prefix sum in place: each lane needs the previous one.
TEST(LlvmTest, LanesThatDependOnEachOtherRunInOrder) {
  ProgramBuilder b;
  const int Y = b.Buffer("y", Scope::kOutput, {33});
  const Expr v = b.Var("v", 32);
  b.Kernel(
      "scan",
      b.Seq({b.Store(Y, {b.Int(0)}, b.pool().Float(1)),
             b.For(v, LoopKind::kVectorized,
                   b.Store(Y, {b.Add(v, b.Int(1))}, b.Add(b.Load(Y, {v}), b.pool().Float(2))))}));
  EXPECT_OK(CompareWithReference(b.program(), 1, 0));
}

TEST(LlvmTest, LocalBufferPerIteration) {
  for (const LoopKind kind : {LoopKind::kSerial, LoopKind::kParallel, LoopKind::kUnrolled}) {
    ProgramBuilder b;
    const int X = b.Buffer("x", Scope::kInput, {9, 40});
    const int Y = b.Buffer("y", Scope::kOutput, {9, 40});
    const int T = b.Buffer("t", Scope::kLocal, {40});
    const Expr i = b.Var("i", 9), v = b.Var("v", 40), w = b.Var("w", 40);
    const Stmt fill = b.For(v, LoopKind::kVectorized,
                            b.Store(T, {v}, b.Mul(b.Load(X, {i, v}), b.pool().Float(2))));
    const Stmt drain =
        b.For(w, LoopKind::kSerial, b.Store(Y, {i, w}, b.Load(T, {b.pool().Sub(b.Int(39), w)})));
    b.Kernel("local", b.For(i, kind, b.Alloc(T, b.Seq({fill, drain}))));
    EXPECT_OK(CompareWithReference(b.program(), 1, 0));
  }
}

TEST(LlvmTest, KernelsRunInOrderThroughAWorkspace) {
  ProgramBuilder b;
  const int X = b.Buffer("x", Scope::kInput, {50});
  const int Y = b.Buffer("y", Scope::kOutput, {50});
  const int W = b.Buffer("w", Scope::kWorkspace, {50});
  const Expr i = b.Var("i", 50), j = b.Var("j", 50);
  b.Kernel("first", b.For(i, LoopKind::kParallel,
                          b.Store(W, {i}, b.Add(b.Load(X, {i}), b.pool().Float(1)))));
  b.Kernel("second",
           b.For(j, LoopKind::kParallel, b.Store(Y, {b.pool().Sub(b.Int(49), j)}, b.Load(W, {j}))));
  EXPECT_OK(CompareWithReference(b.program(), 1, 0));
  ASSERT_OK_AND_ASSIGN(const Compiled compiled, CompileLlvm(b.program(), {}));
  ASSERT_EQ(compiled.args.size(), 3u);
  EXPECT_EQ(compiled.args[2].name, "w");
  EXPECT_EQ(compiled.args[2].scope, Scope::kWorkspace);
  ASSERT_EQ(compiled.launches.size(), 1u);
  EXPECT_EQ(compiled.launches[0].symbol, "kiln_entry");
  EXPECT_EQ(compiled.launches[0].args, (std::vector<uint32_t>{0, 1, 2}));
}

// A task inside a serial loop sees that loop's variable.
TEST(LlvmTest, ParallelLoopCapturesOuterVariables) {
  ProgramBuilder b;
  const int Y = b.Buffer("y", Scope::kOutput, {6, 10}, ir::kInt64);
  const Expr i = b.Var("i", 6), j = b.Var("j", 10);
  b.Kernel("capture",
           b.For(i, LoopKind::kSerial,
                 b.For(j, LoopKind::kParallel, b.Store(Y, {i, j}, b.Add(b.Mul(i, 100), j)))));
  EXPECT_OK(CompareWithReference(b.program(), 1, 0));
}

TEST(LlvmTest, FloorDivisionOfNegativeNumbers) {
  ProgramBuilder b;
  const int D = b.Buffer("d", Scope::kInput, {41}, ir::kInt64);
  const int Y = b.Buffer("y", Scope::kOutput, {41, 8}, ir::kInt64);
  const Expr i = b.Var("i", 41);
  const Expr x = b.pool().Sub(i, b.Int(20));
  const Expr divisor =
      b.pool().If(b.pool().Eq(b.Load(D, {i}), b.Int(0)), b.Int(-1), b.Load(D, {i}));
  std::vector<Stmt> stores;
  int64_t column = 0;
  for (const Expr d : {b.Int(3), b.Int(4), b.Int(-3), divisor}) {
    stores.push_back(b.Store(Y, {i, b.Int(column++)}, b.pool().FloorDiv(x, d)));
    stores.push_back(b.Store(Y, {i, b.Int(column++)}, b.pool().FloorMod(x, d)));
  }
  for (const LoopKind kind : {LoopKind::kSerial, LoopKind::kVectorized, LoopKind::kUnrolled}) {
    ProgramBuilder copy = b;
    copy.Kernel("divide", copy.For(i, kind, copy.Seq(stores)));
    EXPECT_OK(CompareWithReference(copy.program(), 1, 0));
  }
}

// Division that a condition guards must not trap in the lanes that are switched off.
TEST(LlvmTest, GuardedDivisionByZero) {
  ProgramBuilder b;
  const int D = b.Buffer("d", Scope::kInput, {32}, ir::kInt32);
  const int Y = b.Buffer("y", Scope::kOutput, {32}, ir::kInt32);
  const Expr v = b.Var("v", 32);
  const Expr d = b.Load(D, {v}), zero = b.pool().Int(0, ir::kInt32),
             hundred = b.pool().Int(100, ir::kInt32);
  b.Kernel("guard",
           b.For(v, LoopKind::kVectorized,
                 b.Store(Y, {v},
                         b.pool().If(b.pool().Eq(d, zero), zero, b.pool().FloorDiv(hundred, d)))));
  EXPECT_OK(CompareWithReference(b.program(), 1, 0));
}

// A process that compares two programs must not get the first one twice.
TEST(LlvmTest, TwoLoadedProgramsAreTwo) {
  const auto load = [](double value) {
    ProgramBuilder b;
    const int Y = b.Buffer("y", Scope::kOutput, {1});
    b.Kernel("fill", b.Store(Y, {b.Int(0)}, b.pool().Float(value)));
    return LoadedProgram::Load(CompileLlvm(b.program(), {}).value().binary);
  };
  ASSERT_OK_AND_ASSIGN(const LoadedProgram one, load(1));
  ASSERT_OK_AND_ASSIGN(const LoadedProgram two, load(2));
  ASSERT_OK_AND_ASSIGN(const LoadedProgram three, load(3));
  float y = 0;
  one.Run({&y});
  EXPECT_EQ(y, 1);
  two.Run({&y});
  EXPECT_EQ(y, 2);
  three.Run({&y});
  EXPECT_EQ(y, 3);
}

TEST(LlvmTest, SameProgramSameBytes) {
  const MatmulTiles tiles{.m = 12,
                          .n = 64,
                          .k = 8,
                          .tile_m = 6,
                          .tile_n = 32,
                          .local = true,
                          .outer = LoopKind::kParallel};
  ASSERT_OK_AND_ASSIGN(const Compiled first,
                       CompileLlvm(MakeTiledMatmul(tiles).builder.program(), {}));
  ASSERT_OK(CompileLlvm(MakeCopy(LoopKind::kVectorized, 7).program(), {}).status());
  ASSERT_OK_AND_ASSIGN(const Compiled second,
                       CompileLlvm(MakeTiledMatmul(tiles).builder.program(), {}));
  EXPECT_EQ(first.binary, second.binary);
  EXPECT_EQ(first.binary.substr(1, 3), "ELF");
  EXPECT_THAT(first.binary, HasSubstr("libm.so.6"));
}

TEST(LlvmTest, PrintedCodeIsReadable) {
  const MatmulTiles tiles{.m = 12,
                          .n = 64,
                          .k = 8,
                          .tile_m = 6,
                          .tile_n = 32,
                          .local = true,
                          .outer = LoopKind::kParallel};
  const ir::Program program = MakeTiledMatmul(tiles).builder.program();
  ASSERT_OK_AND_ASSIGN(const std::string plain, PrintLlvmIr(program, {}, {.optimize = false}));
  EXPECT_THAT(plain, AllOf(HasSubstr("; input     float32 A[2, 8, 6]"),
                           HasSubstr("@kernel_matmul(ptr %context, ptr noalias"),
                           HasSubstr("%acc = alloca [192 x float], align 64"),
                           HasSubstr("; stage stage"), HasSubstr("fmul contract"),
                           HasSubstr("%i.0 = phi i64"), HasSubstr("@kiln_entry")));
  ASSERT_OK_AND_ASSIGN(const std::string optimized, PrintLlvmIr(program, {}));
  EXPECT_THAT(optimized, Not(HasSubstr("alloca [192 x float]")));
  ASSERT_OK_AND_ASSIGN(const std::string assembly, PrintAssembly(program, Cpu("skylake-avx512")));
  EXPECT_THAT(assembly, HasSubstr("vfmadd"));
}

class LlvmFaultTest : public testing::Test {
 protected:
  static LoadedProgram Compile(Fault fault) {
    auto compiled = CompileLlvm(MakeCopy(LoopKind::kParallel, 10).program(), {}, {.fault = fault});
    KILN_CHECK(compiled.ok());
    auto loaded = LoadedProgram::Load(compiled->binary);
    KILN_CHECK(loaded.ok());
    return std::move(loaded).value();
  }
  GuardedBytes x_{40}, y_{40};
};

TEST_F(LlvmFaultTest, NullStoreCrashes) {
  const LoadedProgram program = Compile(Fault::kNullStore);
  EXPECT_EXIT(program.Run({x_.data(), y_.data()}), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(LlvmFaultTest, TrapCrashes) {
  const LoadedProgram program = Compile(Fault::kTrap);
  EXPECT_EXIT(program.Run({x_.data(), y_.data()}), testing::KilledBySignal(SIGILL), "");
}

TEST_F(LlvmFaultTest, InfiniteLoopHangs) {
  const LoadedProgram program = Compile(Fault::kInfiniteLoop);
  // The alarm ends the loop. Without it the child would exit with 0.
  const auto run_for_a_second = [&] {
    signal(SIGALRM, SIG_DFL);
    alarm(1);
    program.Run({x_.data(), y_.data()});
    _exit(0);
  };
  EXPECT_EXIT(run_for_a_second(), testing::KilledBySignal(SIGALRM), "");
}

TEST(LlvmWrongAnswerTest, OneElementIsFarOff) {
  for (const ir::Type type : {ir::kFloat32, ir::kFloat16, ir::kBFloat16, ir::kFloat8E4M3,
                              ir::kFloat8E5M2, ir::kFloat64, ir::kInt8, ir::kInt64, ir::kBool}) {
    const ir::Program program = MakeCopy(LoopKind::kVectorized, 9, type).program();
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      std::vector<ir::NDArray> expected = MakeArguments(program, seed);
      ASSERT_OK_AND_ASSIGN(const std::vector<ir::NDArray> wrong,
                           RunCompiled(program, expected, {}, {.fault = Fault::kWrongAnswer}));
      ASSERT_OK(RunReference(program, expected));
      const double distance = std::abs(wrong[1].GetDouble(0) - expected[1].GetDouble(0));
      EXPECT_GE(distance, 1 + 0.5 * std::abs(expected[1].GetDouble(0)) - (type == ir::kBool))
          << ir::TypeName(type);
      for (int64_t i = 1; i < 9; ++i) EXPECT_EQ(wrong[1].GetDouble(i), expected[1].GetDouble(i));
    }
  }
}

TEST(LlvmRefusalTest, ABrokenProgram) {
  ProgramBuilder b;
  const int Y = b.Buffer("y", Scope::kOutput, {8});
  const Expr i = b.Var("i", 8);
  b.Kernel("loose", b.Store(Y, {i}, b.pool().Float(1)));
  EXPECT_FALSE(ir::Verify(b.program()).ok());
  EXPECT_EQ(PrintLlvmIr(b.program(), {}).status(), ir::Verify(b.program()));
}

TEST(LlvmRefusalTest, TooMuchLocalMemory) {
  ProgramBuilder b;
  const int Y = b.Buffer("y", Scope::kOutput, {1});
  const int small = b.Buffer("small", Scope::kLocal, {16});
  const int big = b.Buffer("big_tile", Scope::kLocal, {5 << 20});
  const Stmt store = b.Store(Y, {b.Int(0)}, b.pool().Float(1));
  b.Kernel("hungry", b.Alloc(small, b.Alloc(big, store)));
  EXPECT_THAT(CompileLlvm(b.program(), {}),
              StatusIs(StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("big_tile"), HasSubstr("20971520"), HasSubstr("hungry"))));
}

TEST(LlvmRefusalTest, SomeMebibytesOfLocalMemoryWork) {
  ProgramBuilder b;
  constexpr int64_t kSize = 700001;
  const int Y = b.Buffer("y", Scope::kOutput, {kSize});
  const int T = b.Buffer("t", Scope::kLocal, {kSize});
  const Expr i = b.Var("i", kSize), j = b.Var("j", kSize);
  b.Kernel(
      "big",
      b.Alloc(T, b.Seq({b.For(i, LoopKind::kVectorized,
                              b.Store(T, {i}, b.pool().Cast(ir::kFloat32, i))),
                        b.For(j, LoopKind::kSerial,
                              b.Store(Y, {j}, b.Load(T, {b.pool().Sub(b.Int(kSize - 1), j)})))})));
  EXPECT_OK(CompareWithReference(b.program(), 1, 0));
}

TEST(LlvmRefusalTest, GpuPrograms) {
  ir::Program threads = MakeCopy(LoopKind::kThreadX, 4).program();
  threads.kernels[0].block[0] = 4;
  EXPECT_THAT(
      CompileLlvm(threads, {}),
      StatusIs(StatusCode::kInvalidArgument, AllOf(HasSubstr("'v'"), HasSubstr("threadIdx.x"))));
  ProgramBuilder b;
  b.Buffer("y", Scope::kOutput, {1});
  b.Kernel("barrier", ir::MakeBarrier(b.pool()));
  EXPECT_THAT(CompileLlvm(b.program(), {}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("barrier")));
  ProgramBuilder c;
  c.Buffer("tile", Scope::kShared, {1});
  EXPECT_THAT(CompileLlvm(c.program(), {}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("'tile'")));
}

TEST(LlvmTargetTest, NativeBecomesANameThatResolvesToItself) {
  ASSERT_OK_AND_ASSIGN(const target::Target host, ResolveCpu({}));
  EXPECT_NE(host.options.at("mcpu"), "native");
  EXPECT_NE(host.options.at("mcpu"), "");
  ASSERT_OK_AND_ASSIGN(const target::Target named, ResolveCpu(Cpu("native")));
  EXPECT_EQ(named, host);
  ASSERT_OK_AND_ASSIGN(const target::Target again, ResolveCpu(host));
  EXPECT_EQ(again, host);
}

TEST(LlvmTargetTest, Refusals) {
  EXPECT_THAT(ResolveCpu(Cpu("pentium9")),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("'pentium9'")));
  target::Target target = Cpu("x86-64");
  target.options["mattr"] = "+avx2,+warp";
  EXPECT_THAT(ResolveCpu(target), StatusIs(StatusCode::kInvalidArgument, HasSubstr("'+warp'")));
  target.options["mattr"] = "+avx2,-sse4.2";
  EXPECT_OK(ResolveCpu(target));
  target.options["mtriple"] = "sparc-sun-solaris";
  EXPECT_THAT(ResolveCpu(target), StatusIs(StatusCode::kInvalidArgument, HasSubstr("sparc")));
  EXPECT_THAT(ResolveCpu({.kind = &target::kCuda}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("llvm")));
}
}  // namespace
}  // namespace kiln::codegen
