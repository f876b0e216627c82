// Sums of products by matrix units: what the emulated text computes is what the program says, for
// every place of the operands; what does not fit is refused with its reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/right_program_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/ir/program_text.h"

namespace kiln::codegen {
namespace {
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// One block: wi x wj warps, each with iv x 8 rows and jv x 8 columns, or, of ri or rj neighbours for
// each thread, more.
struct Product {
  bool a_by_k = false, b_by_k = true;  // in shared memory: k is the first dimension
  int wi = 1, wj = 1, iv = 2, jv = 2, depth = 32, k_split = 1;
  int pad = 8;  // elements behind each row
  std::string type = "float16";
  // The statement's parts.
  std::string row = "t % 32 // 4", column = "t % 4", product = "float32({a})*float32({b})",
              guard = "", hint = "matrix_unit 1", accumulator = "float32";
  int threads = 0;  // 0: those of the warps
  int ri = 1, rj = 2;

  int rows() const { return 8 * wi * iv * ri; }
  int columns() const { return 4 * wj * jv * rj; }

  std::string Text() const {
    const int n = threads != 0 ? threads : 32 * wi * wj;
    const auto shape = [&](bool by_k, int length) {
      return by_k ? fmt::format("{}, {}", depth, length + pad)
                  : fmt::format("{}, {}", length, depth + pad);
    };
    const auto at = [](bool by_k, std::string_view own, std::string_view k) {
      return by_k ? fmt::format("{}, {}", k, own) : fmt::format("{}, {}", own, k);
    };
    const auto fill = [&](std::string_view to, std::string_view from, bool by_k, int length) {
      const int inner = by_k ? length : depth, all = length * depth;
      return fmt::format(
          "for f{0} in 0..{1} {{ {0}[(f{0}*{2} + t) // {3}, (f{0}*{2} + t) % {3}] = "
          "{4}[(f{0}*{2} + t) // {3}, (f{0}*{2} + t) % {3}] @ {0} }} ",
          to, all / n, n, inner, from);
    };
    const std::string i =
        fmt::format("iv*{} + (t // {} * 8 + {})*{} + ii", 8 * wi * ri, 32 * wj, row, ri);
    const std::string j =
        fmt::format("jv*{} + (t // 32 % {} * 4 + {})*{} + jj", 4 * wj * rj, wj, column, rj);
    const std::string k = k_split > 1 ? fmt::format("ko*{} + k", depth / k_split) : "k";
    const std::string a = fmt::format("a[{}]", at(a_by_k, i, k)),
                      b = fmt::format("b[{}]", at(b_by_k, j, k));
    std::string value = product;
    value.replace(value.find("{a}"), 3, a);
    value.replace(value.find("{b}"), 3, b);
    const auto dims = [&](bool by_k, int length) {
      return by_k ? fmt::format("{}, {}", depth, length) : fmt::format("{}, {}", length, depth);
    };
    return fmt::format(
        "program(A: input {type}[{a_dims}], B: input {type}[{b_dims}], "
        "C: output {sum}[{rows}, {columns}]) {{ stage a stage b stage s {hint} stage C "
        "kernel product grid [1, 1, 1] block [{n}, 1, 1] {{ threadIdx.x t in 0..{n} {{ "
        "alloc acc: local {sum}[{iv}, {ri}, {jv}, {rj}] alloc a: shared {type}[{a_shape}] "
        "alloc b: shared {type}[{b_shape}] {fill_a} {fill_b} barrier "
        "for i0 in 0..{iv} {{ for ii0 in 0..{ri} {{ for j0 in 0..{jv} {{ for jj0 in 0..{rj} {{ "
        "acc[i0, ii0, j0, jj0] = {zero} @ s }} }} }} }} "
        "for ko in 0..{k_split} {{ for k in 0..{k_depth} {{ unroll iv in 0..{iv} {{ for ii in "
        "0..{ri} {{ unroll jv in 0..{jv} {{ for jj in 0..{rj} {{ {guard} acc[iv, ii, jv, jj] = "
        "acc[iv, ii, jv, jj] + {value} @ s {end} }} }} }} }} }} }} "
        "for i1 in 0..{iv} {{ for ii1 in 0..{ri} {{ for j1 in 0..{jv} {{ for jj1 in 0..{rj} {{ "
        "C[i1*{wi8} + (t // {wj32} * 8 + t % 32 // 4)*{ri} + ii1, j1*{wj4} + (t // 32 % {wj} * 4 + "
        "t % 4)*{rj} + jj1] = acc[i1, ii1, j1, jj1] @ C }} }} }} }} }} }} }}",
        fmt::arg("type", type), fmt::arg("sum", accumulator),
        fmt::arg("zero", accumulator == "int32" ? "int32(0)" : "0.0"),
        fmt::arg("a_dims", dims(a_by_k, rows())), fmt::arg("b_dims", dims(b_by_k, columns())),
        fmt::arg("rows", rows()), fmt::arg("columns", columns()), fmt::arg("hint", hint),
        fmt::arg("n", n), fmt::arg("iv", iv), fmt::arg("jv", jv),
        fmt::arg("a_shape", shape(a_by_k, rows())), fmt::arg("b_shape", shape(b_by_k, columns())),
        fmt::arg("fill_a", fill("a", "A", a_by_k, rows())),
        fmt::arg("fill_b", fill("b", "B", b_by_k, columns())), fmt::arg("k_split", k_split),
        fmt::arg("k_depth", depth / k_split), fmt::arg("guard", guard), fmt::arg("value", value),
        fmt::arg("end", guard.empty() ? "" : "}"), fmt::arg("wi8", 8 * wi * ri),
        fmt::arg("wj4", 4 * wj * rj), fmt::arg("ri", ri), fmt::arg("rj", rj),
        fmt::arg("wj32", 32 * wj), fmt::arg("wj", wj));
  }
};

std::string Generate(const Product& product) {
  const StatusOr<ir::Program> program = ir::ParseProgram(product.Text());
  if (!program.ok()) return fmt::format("{}\n{}", Message(program.status()), product.Text());
  const StatusOr<CudaSource> source = GenerateCuda(*program);
  return source.ok() ? source->text : std::string(Message(source.status()));
}

void ExpectRight(const Product& product, double tolerance = 1e-5) {
  SCOPED_TRACE(product.Text());
  const bool is_float8 = product.type.starts_with("float8");
  ExpectRightProgram(product.Text(),
                     {.tolerance = tolerance, .arch = is_float8 ? "sm_89" : "sm_80"});
}

TEST(MatrixTile, OperandsOfEveryLayout) {
  for (const bool a_by_k : {false, true}) {
    for (const bool b_by_k : {false, true}) {
      const Product product{.a_by_k = a_by_k, .b_by_k = b_by_k};
      ExpectRight(product);
      const std::string text = Generate(product);
      const std::string kernel = text.substr(text.find("__global__"));
      EXPECT_THAT(kernel, HasSubstr("multiply_tiles_f16(acc[0], acc[1], acc[4], acc[5], "));
      EXPECT_EQ(kernel.find("load_tiles_transposed(a_tiles") != kernel.npos, a_by_k);
      EXPECT_EQ(kernel.find("load_tiles_transposed(b_tiles") != kernel.npos, b_by_k);
      EXPECT_THAT(kernel, Not(HasSubstr("f16_to_float")));
    }
  }
}

TEST(MatrixTile, SeveralWarpsAndTiles) {
  for (const auto& [wi, wj, iv, jv] :
       {std::array{2, 1, 2, 4}, {1, 2, 4, 2}, {2, 2, 4, 3}, {4, 1, 2, 1}, {1, 4, 6, 4}}) {
    Product product{.wi = wi, .wj = wj, .iv = iv, .jv = jv};
    ExpectRight(product);
    product.a_by_k = true;
    product.b_by_k = false;
    ExpectRight(product);
  }
}

// A warp that exchanges rows with no other one does not wait for what others fetch.
TEST(MatrixTile, TheEmulatorSeesAMissingBarrier) {
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(Product{.wi = 2}.Text()));
  ASSERT_OK_AND_ASSIGN(const ir::NDArray right, EmulateWithout(program, "nothing"));
  ASSERT_OK_AND_ASSIGN(const ir::NDArray wrong, EmulateWithout(program, "__syncthreads();"));
  EXPECT_FALSE(right == wrong);
}

// The other factor first.
TEST(MatrixTile, FactorsInEitherOrder) {
  ExpectRight({.wi = 2, .product = "float32({b})*float32({a})"});
}

TEST(MatrixTile, BFloats) { ExpectRight({.wi = 2, .type = "bfloat16"}); }

// Of sums of some tens of terms below 1, of which each is off by 2^-11 at most.
constexpr double kRounding = 5e-3;

Product Tf32(Product product) {
  product.type = "float32";
  product.product = "{a}*{b}";
  return product;
}

TEST(MatrixTile, Tf32OfEveryLayout) {
  for (const bool a_by_k : {false, true}) {
    for (const bool b_by_k : {false, true}) {
      for (const int pad : {4, 8, 3}) {
        const Product product = Tf32({.a_by_k = a_by_k, .b_by_k = b_by_k, .wj = 2, .pad = pad});
        ExpectRight(product, kRounding);
        const std::string text = Generate(product);
        const std::string kernel = text.substr(text.find("__global__"));
        EXPECT_THAT(kernel, AllOf(HasSubstr("round_tiles(a_tiles);\n"),
                                  HasSubstr("round_tiles(b_tiles);\n"),
                                  HasSubstr("multiply_tiles_tf32(acc[0], acc[1], acc[4], ")));
        // Neighbours along the sum, in aligned rows, come by ldmatrix.
        EXPECT_EQ(kernel.find("load_tiles(a_tiles") != kernel.npos, !a_by_k && pad != 3);
        EXPECT_EQ(kernel.find("load_tiles(b_tiles") != kernel.npos, !b_by_k && pad != 3);
        EXPECT_THAT(kernel, Not(HasSubstr("load_tiles_transposed")));
      }
    }
  }
}

TEST(MatrixTile, Tf32OfSeveralWarpsAndTiles) {
  ExpectRight(Tf32({.wi = 2, .wj = 2, .iv = 4, .jv = 3, .depth = 24}), kRounding);
  ExpectRight(Tf32({.b_by_k = false, .wi = 4, .jv = 6, .depth = 16, .k_split = 2, .pad = 4}),
              kRounding);
}

// What the emulation computes is what rounded factors give, to the last bits.
TEST(MatrixTile, Tf32RoundsFactors) {
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(Tf32({}).Text()));
  EXPECT_THAT(CompareEmulated(program, 17, 1e-5),
              StatusIs(StatusCode::kInternal, HasSubstr(", expected ")));
}

Product Bytes(Product product, std::string_view type = "int8") {
  product.type = type;
  product.product = "int32({a})*int32({b})";
  product.accumulator = "int32";
  product.ri = product.a_by_k ? 2 : 1;
  product.rj = product.b_by_k ? 4 : 2;
  product.pad = 16;
  return product;
}

TEST(MatrixTile, BytesOfEveryLayout) {
  for (const bool a_by_k : {false, true}) {
    for (const bool b_by_k : {false, true}) {
      const Product product = Bytes({.a_by_k = a_by_k, .b_by_k = b_by_k, .wj = 2, .depth = 64});
      ExpectRight(product, 0);
      const std::string text = Generate(product);
      const std::string kernel = text.substr(text.find("__global__"));
      EXPECT_THAT(kernel, HasSubstr("multiply_tiles_s8(acc[0], acc["));
      EXPECT_EQ(kernel.find("load_tiles_transposed(a_tiles") != kernel.npos, a_by_k);
      EXPECT_EQ(kernel.find("load_tiles_transposed(b_tiles") != kernel.npos, b_by_k);
      EXPECT_EQ(kernel.find("unzip_bytes(") != kernel.npos, a_by_k || b_by_k);
      EXPECT_THAT(kernel, Not(HasSubstr("__dp4a")));
    }
  }
}

TEST(MatrixTile, BytesOfSeveralWarpsAndTiles) {
  ExpectRight(Bytes({.wi = 2, .wj = 2, .iv = 4, .jv = 3, .depth = 96, .k_split = 3}), 0);
  ExpectRight(Bytes({.a_by_k = true, .b_by_k = false, .wi = 4, .iv = 1, .jv = 4}), 0);
  ExpectRight(Bytes({.a_by_k = true, .wi = 2, .wj = 2, .iv = 3, .jv = 1}, "uint8"), 0);
}

Product Float8s(Product product, std::string_view type = "float8_e4m3fn") {
  product = Bytes(product, type);
  product.product = "float32({a})*float32({b})";
  product.accumulator = "float32";
  return product;
}

// Read as other bytes are.
TEST(MatrixTile, Float8sOfEveryLayout) {
  for (const auto& [type, unit] : {std::pair{"float8_e4m3fn", "e4m3"}, {"float8_e5m2", "e5m2"}}) {
    for (const bool a_by_k : {false, true}) {
      for (const bool b_by_k : {false, true}) {
        const Product product =
            Float8s({.a_by_k = a_by_k, .b_by_k = b_by_k, .wj = 2, .depth = 64}, type);
        ExpectRight(product);
        const std::string text = Generate(product);
        const std::string kernel = text.substr(text.find("__global__"));
        EXPECT_THAT(kernel, HasSubstr(fmt::format("multiply_tiles_{}(acc[0], acc[", unit)));
        EXPECT_EQ(kernel.find("load_tiles_transposed(a_tiles") != kernel.npos, a_by_k);
        EXPECT_EQ(kernel.find("load_tiles_transposed(b_tiles") != kernel.npos, b_by_k);
        EXPECT_EQ(kernel.find("unzip_bytes(") != kernel.npos, a_by_k || b_by_k);
        EXPECT_THAT(kernel, Not(HasSubstr("_to_float(")));
      }
    }
  }
}

TEST(MatrixTile, Float8sOfSeveralWarpsAndTiles) {
  ExpectRight(Float8s({.wi = 2, .wj = 2, .iv = 4, .jv = 3, .depth = 96, .k_split = 3}));
  ExpectRight(Float8s({.a_by_k = true, .b_by_k = false, .wi = 4, .iv = 1, .jv = 4}, "float8_e5m2"));
  ExpectRight(Float8s({.a_by_k = true, .wi = 2, .wj = 2, .iv = 3, .jv = 1}));
}

TEST(MatrixTile, LongSumsInLoops) {
  const Product product{.jv = 4, .depth = 96, .k_split = 3};
  ExpectRight(product);
  EXPECT_THAT(Generate(product), AllOf(HasSubstr("for (int ko = 0; ko < 3; ++ko) {"),
                                       HasSubstr("for (int k_step = 0; k_step < 2; ++k_step) {")));
}

TEST(MatrixTile, WhatDoesNotFitIsRefused) {
  const struct {
    Product product;
    std::string why;
  } kCases[] = {
      {{.depth = 24}, "no loop of the sum has a multiple of 16 iterations"},
      {{.iv = 1}, "a thread has 1 rows and 4 columns, expected an even number of each"},
      {{.pad = 4}, "8 neighbours of a are not aligned to 16 bytes"},
      {{.product = "float32({a} * {b})"},
       "it is no sum of products of two elements of one type, each converted to that of the sum, "
       "that a unit multiplies: float16 in float32, "},
      {{.product = "float32({a}) + float32({b})"}, "it is no sum into registers"},
      {{.row = "t % 8", .column = "t % 4"},
       "the first factor, a, is not the same for the threads of a row of 8 x 4"},
      {{.guard = "if jj + k < 100 {"}, "conditions stand inside of the tile"},
      {{.a_by_k = true, .row = "(7 - t % 32 // 4)"},
       "a has neighbours neither along the sum nor along the rows, 1 of a thread"},
      {{.type = "int16", .product = "int32({a})*int32({b})", .accumulator = "int32"},
       "it is no sum of products of two elements"},
      {Bytes({.depth = 48}), "no loop of the sum has a multiple of 32 iterations"},
      {Tf32({.depth = 20}), "no loop of the sum has a multiple of 8 iterations"},
      {Float8s({.depth = 48}), "no loop of the sum has a multiple of 32 iterations"},
      {Bytes({}, "float8_e4m3fn"), "it is no sum of products of two elements"},
  };
  for (const auto& [product, why] : kCases) {
    EXPECT_THAT(Generate(product),
                AllOf(HasSubstr("matrix units can't compute stage 's': "), HasSubstr(why)))
        << product.Text();
  }
}

TEST(MatrixTile, CompilesForEveryArchitecture) {
  const std::pair<Product, std::string> kCases[] = {
      {{}, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"},
      {Tf32({}), "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"},
      {Bytes({.a_by_k = true}), "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"},
      {Bytes({}, "uint8"), "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32"},
      {Float8s({.b_by_k = false}), "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"},
      {Float8s({}, "float8_e5m2"), "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32"},
  };
  if (!FindNvrtc().ok()) GTEST_SKIP() << "no NVRTC";
  for (const auto& [product, instruction] : kCases) {
    const std::string text = Generate(product);
    for (const char* arch : {"sm_80", "sm_89", "sm_90"}) {
      if (product.type.starts_with("float8") && std::string_view(arch) == "sm_80") continue;
      SCOPED_TRACE(arch);
      ASSERT_OK_AND_ASSIGN(const std::string ptx, CompilePtx(text, arch));
      EXPECT_THAT(ptx, HasSubstr(instruction));
      EXPECT_OK(CompileCubin(text, arch).status());
    }
  }
}

TEST(MatrixTile, WithoutTheHintThreadsMultiply) {
  const Product product{.hint = ""};
  EXPECT_THAT(Generate(product), Not(HasSubstr("multiply_tiles")));
  ExpectRight(product);
}

TEST(MatrixTile, NeedsAnArchitectureThatHasThem) {
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(Product().Text()));
  EXPECT_OK(CheckCudaProgram(program, {}, *target::ParseTarget("cuda -arch=sm_80")));
  EXPECT_THAT(CheckCudaProgram(program, {}, *target::ParseTarget("cuda -arch=sm_75")),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("matrix units as they are from sm_80 on, the target is sm_75")));
}

TEST(MatrixTile, Float8sNeedALaterOne) {
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(Float8s({}).Text()));
  EXPECT_OK(CheckCudaProgram(program, {}, *target::ParseTarget("cuda -arch=sm_89")));
  EXPECT_THAT(CheckCudaProgram(program, {}, *target::ParseTarget("cuda -arch=sm_86")),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("matrix units as they are from sm_89 on, the target is sm_86")));
}

TEST(MatrixTile, RoundsOnlyWhereTheTargetAllowsIt) {
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(Tf32({}).Text()));
  EXPECT_OK(CheckCudaProgram(program, {}, *target::ParseTarget("cuda -arch=sm_80 -math=tf32")));
  const target::Target full = *target::ParseTarget("cuda -arch=sm_80");
  EXPECT_THAT(CheckCudaProgram(program, {}, full),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("a target allows by -math=tf32")));
  EXPECT_THAT(CompileCuda(program, full),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("a target allows by -math=tf32")));
}

}  // namespace
}  // namespace kiln::codegen
