// Factors of matrix units that each thread computes: what the emulated text computes is what the
// program says, and the text takes the short ways where they give the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/right_program_testing.h"

namespace kiln::codegen {
namespace {
using testing::HasSubstr;
using testing::Not;

// One block: c[16, n] = a[16, depth] v[depth, n], warps beside each other, v computed of w and of
// scale.
struct Product {
  int neighbours = 8;  // columns of a thread
  int depth = 32, warps = 4;
  std::string type = "float16", weight = "int8";
  int rows_of_weights = 32;
  std::string row = "k";  // of the weights, in the term
  std::string value = "float16({w})*{s}";
  std::string scale_row = "0";

  int columns() const { return 4 * warps * neighbours; }

  std::string Text() const {
    const std::string column = fmt::format("t % {}*{} + jj", 4 * warps, neighbours);
    std::string v = value;
    const auto put = [&v](std::string_view blank, const std::string& text) {
      for (size_t at = v.find(blank); at != v.npos; at = v.find(blank)) v.replace(at, 3, text);
    };
    put("{w}", fmt::format("w[{}, {}]", row, column));
    put("{s}", fmt::format("s[{}, {}]", scale_row, column));
    const auto fill = [&](std::string_view name, int rows, int width, std::string_view times = "") {
      const int all = rows * width;
      return fmt::format(
          "for f{0} in 0..{1} {{ {0}[(f{0}*{4} + t) // {2}, (f{0}*{4} + t) % {2}] = "
          "{3}[(f{0}*{4} + t) // {2}, (f{0}*{4} + t) % {2}]{5} @ {0} }} ",
          name, all / (32 * warps), width, static_cast<char>(std::toupper(name[0])), 32 * warps,
          times);
    };
    return fmt::format(
        "program(A: input {type}[16, {depth}], W: input {weight}[{wrows}, {columns}], "
        "S: input {type}[4, {columns}], C: output float32[16, {columns}]) {{ stage a stage w "
        "stage s stage sum matrix_unit 1 stage C "
        "kernel product grid [1, 1, 1] block [{threads}, 1, 1] {{ threadIdx.x t in 0..{threads} {{ "
        "alloc acc: local float32[2, {n}] alloc a: shared {type}[16, {adepth}] "
        "alloc w: shared {weight}[{wrows}, {wcolumns}] alloc s: shared {type}[4, {columns}] "
        "{fill_a} {fill_w} {fill_s} barrier "
        "for i0 in 0..2 {{ for j0 in 0..{n} {{ acc[i0, j0] = 0.0 @ sum }} }} "
        "for k in 0..{depth} {{ unroll jj in 0..{n} {{ unroll ii in 0..2 {{ "
        "acc[ii, jj] = acc[ii, jj] + float32(a[ii*8 + t // {row}, k])*float32({value}) @ sum "
        "}} }} }} "
        "for i1 in 0..2 {{ for j1 in 0..{n} {{ "
        "C[i1*8 + t // {row}, t % {row}*{n} + j1] = acc[i1, j1] @ C }} }} }} }} }}",
        fmt::arg("threads", 32 * warps), fmt::arg("row", 4 * warps), fmt::arg("type", type),
        fmt::arg("weight", weight), fmt::arg("depth", depth), fmt::arg("adepth", depth + 8),
        fmt::arg("wrows", rows_of_weights), fmt::arg("columns", columns()),
        fmt::arg("wcolumns", columns() + 16), fmt::arg("n", neighbours),
        fmt::arg("fill_a", fill("a", 16, depth)),
        fmt::arg("fill_w", fill("w", rows_of_weights, columns(),
                                weight == "int8" ? "*int8(16)" : "*uint8(13)")),
        fmt::arg("fill_s", fill("s", 4, columns())), fmt::arg("value", v));
  }
};

std::string KernelOf(const Product& product) {
  const StatusOr<ir::Program> program = ir::ParseProgram(product.Text());
  if (!program.ok()) return fmt::format("{}\n{}", Message(program.status()), product.Text());
  const StatusOr<CudaSource> source = GenerateCuda(*program);
  if (!source.ok()) return std::string(Message(source.status()));
  return source->text.substr(source->text.find("__global__"));
}

// The unit rounds a factor that the program does not, by 2^-11 of each term. Terms are as large as
// 128.
void ExpectRight(const Product& product, double tolerance = 0.25) {
  SCOPED_TRACE(product.Text());
  ExpectRightProgram(product.Text(), {.tolerance = tolerance, .arch = "sm_80"});
}

TEST(ComputedFactor, BytesWithScales) {
  for (const int neighbours : {2, 4, 8, 16}) {
    const Product product{.neighbours = neighbours};
    ExpectRight(product);
    EXPECT_THAT(KernelOf(product), HasSubstr("= multiply_pairs_f16(bytes_to_f16(w_words"));
    EXPECT_THAT(KernelOf(product), Not(HasSubstr("f16_to_float")));
  }
  EXPECT_THAT(KernelOf({.neighbours = 16}), HasSubstr("const uint2 w_words"));
}

TEST(ComputedFactor, UnsignedBytesWithScalesOfGroups) {
  ExpectRight({.weight = "uint8", .scale_row = "k // 8"});
}

// Two terms of one byte.
TEST(ComputedFactor, BitsOfBytes) {
  for (const int neighbours : {4, 8, 16}) {
    Product product{
        .neighbours = neighbours, .weight = "uint8", .rows_of_weights = 16, .row = "k // 2"};
    product.value = "float16(int32(({w} >> uint8(k % 2*4)) & uint8(15)) - 8)*{s}";
    ExpectRight(product);
    EXPECT_THAT(KernelOf(product), HasSubstr(">> 4"));
    EXPECT_THAT(KernelOf(product), HasSubstr("0x000f000fu, 0x64006400u, 0xe408e408u)"));
    EXPECT_THAT(KernelOf(product), Not(HasSubstr("f16_to_float")));
  }
}

// A mantissa of 8 bits does not hold all bytes exactly at the end of a number; it holds 4 bits.
TEST(ComputedFactor, BFloats) {
  const Product bytes{.type = "bfloat16", .value = "bfloat16({w})*{s}"};
  ExpectRight(bytes, 2);
  EXPECT_THAT(KernelOf(bytes), HasSubstr("pack_bf16("));
  Product bits{.type = "bfloat16", .weight = "uint8", .rows_of_weights = 16, .row = "k // 2"};
  bits.value = "bfloat16(int32(({w} >> uint8(k % 2*4)) & uint8(15)) - 8)*{s}";
  ExpectRight(bits, 0.5);
  EXPECT_THAT(KernelOf(bits), HasSubstr("bytes_to_bf16(w_words"));
}

// A weight without its zero point, which is a byte too: here the next row's.
TEST(ComputedFactor, DifferencesOfBytes) {
  const Product product{.weight = "uint8",
                        .rows_of_weights = 33,
                        .value = "float16(int32({w}) - int32(w[k + 1, t % 16*8 + jj]))*{s}"};
  ExpectRight(product);
  EXPECT_THAT(KernelOf(product),
              HasSubstr("= multiply_pairs_f16(multiply_add_pairs_f16(bytes_to_f16("));
  EXPECT_THAT(KernelOf(product), HasSubstr("0xbc00bc00u"));
}

// A value that rounds more than once is computed in float.
TEST(ComputedFactor, AnyOtherValue) {
  for (const std::string value : {"(float16({w}) + {s})*{s}", "float16(float32({w})*0.125) + {s}",
                                  "max(float16({w}), {s})"}) {
    ExpectRight({.value = value}, value.starts_with("(") ? 2 : 0.25);
    EXPECT_THAT(KernelOf({.value = value}), HasSubstr("= pack_f16("));
  }
}

TEST(ComputedFactor, OtherFactorsAreRefused) {
  Product product{.warps = 1, .value = "float16({w})*a[t // 4, k]"};
  EXPECT_THAT(KernelOf(product), HasSubstr("is not the same for all rows"));
  product.value = "float16({w})*S[0, t % 4*8 + jj]";
  EXPECT_THAT(KernelOf(product), HasSubstr("S is not in shared memory"));
  product = {.neighbours = 32, .warps = 1};
  EXPECT_THAT(KernelOf(product), HasSubstr("no groups of 2, 4, 8 or 16 neighbours"));
}

}  // namespace
}  // namespace kiln::codegen
