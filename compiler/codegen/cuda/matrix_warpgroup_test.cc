// Sums of products by matrix units of four warps, and swizzled operands: what the emulated text
// computes is what the program says, for every place of the operands; what does not fit is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

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

// One block: `groups` x `warps` warps along the rows. A thread has iv rows of each 8 x 4 threads,
// and jv columns of 8. `ring` buffers of each operand, of which the last one is used.
struct Product {
  bool a_by_k = false, b_by_k = true;  // in shared memory: k is the first dimension
  int warps = 4, iv = 2, jv = 8, depth = 64, k_split = 1;
  int unit = 2;
  bool swizzles_a = true, swizzles_b = true;
  std::string type = "float16";
  int a_pad = 0, b_pad = 0;
  std::string column = "0";              // of the warp: added to the columns of the second factor
  int first_a_row = 0, first_b_row = 0;  // in their buffers
  bool sums_by_tile = false;             // pairs of one row after the other
  int warp_columns = 1;                  // of the warps
  bool threads_by_column = false;        // in the program
  bool has_row_pairs = false;            // the two rows of a thread are neighbours

  int row_threads() const { return 8 * warps / warp_columns; }
  int rows() const { return row_threads() * iv; }
  int columns() const { return 8 * jv * warp_columns; }
  std::string sum() const { return type.find("int") != type.npos ? "int32" : "float32"; }

  std::string Text() const {
    const int n = 32 * warps;
    const auto shape = [&](bool by_k, int length, int pad, int first) {
      return by_k ? fmt::format("{}, {}", depth + first, length + pad)
                  : fmt::format("{}, {}", length + first, depth + pad);
    };
    const auto dims = [&](bool by_k, int length) {
      return by_k ? fmt::format("{}, {}", depth, length) : fmt::format("{}, {}", length, depth);
    };
    const auto at = [](bool by_k, int first, std::string_view own, std::string_view k) {
      return by_k ? fmt::format("{} + {}, {}", k, first, own)
                  : fmt::format("{} + {}, {}", own, first, k);
    };
    const auto fill = [&](std::string_view to, std::string_view from, bool by_k, int length,
                          int first) {
      const int inner = by_k ? length : depth, all = length * depth;
      return fmt::format(
          "for f{0} in 0..{1} {{ {0}[(f{0}*{2} + t) // {3} + {5}, (f{0}*{2} + t) % {3}] = "
          "{4}[(f{0}*{2} + t) // {3}, (f{0}*{2} + t) % {3}] @ {0} }} ",
          to, all / n, n, inner, from, first);
    };
    const auto factor = [&](std::string_view from, const std::string& at) {
      const std::string load = fmt::format("{}[{}]", from, at);
      return type == "float32" ? load : fmt::format("{}({})", sum(), load);
    };
    const std::string k = k_split > 1 ? fmt::format("ko*{} + k", depth / k_split) : "k";
    const int in_row = 4 * warp_columns;
    const std::string row = threads_by_column ? fmt::format("t % {}", row_threads())
                                              : fmt::format("t // {}", in_row),
                      pair = threads_by_column ? fmt::format("t // {}", row_threads())
                                               : fmt::format("t % {}", in_row);
    const auto row_of = [&](std::string_view iv) {
      return has_row_pairs
                 ? fmt::format("{0} // 2 * {1} + {2} * 2 + {0} % 2", iv, 2 * row_threads(), row)
                 : fmt::format("{}*{} + {}", iv, row_threads(), row);
    };
    const std::string i = row_of("iv");
    const std::string j = fmt::format("jv*{} + {} * 2 + jj + {}", 2 * in_row, pair, column);
    const auto acc = [&](std::string_view i, std::string_view j, std::string_view jj) {
      if (has_row_pairs) return fmt::format("acc[{}, {}, {}]", j, jj, i);
      return sums_by_tile ? fmt::format("acc[{}, {}, {}]", j, i, jj)
                          : fmt::format("acc[{}, {}, {}]", i, j, jj);
    };
    return fmt::format(
        "program(A: input {type}[{a_dims}], B: input {type}[{b_dims}], "
        "C: output {sum}[{rows}, {columns}]) {{ stage a{swizzle_a} stage b{swizzle_b} "
        "stage s matrix_unit {unit} stage C "
        "kernel product grid [1, 1, 1] block [{n}, 1, 1] {{ threadIdx.x t in 0..{n} {{ "
        "alloc acc: local {sum}[{acc_shape}] alloc a: shared {type}[{a_shape}] "
        "alloc b: shared {type}[{b_shape}] {fill_a} {fill_b} barrier "
        "for i0 in 0..{iv} {{ for j0 in 0..{jv} {{ for jj0 in 0..2 {{ {acc0} = {zero} @ s }} }} }} "
        "for ko in 0..{k_split} {{ for k in 0..{k_depth} {{ unroll iv in 0..{iv} {{ unroll jv in "
        "0..{jv} {{ for jj in 0..2 {{ {acc} = {acc} + {a}*{b} @ s "
        "}} }} }} }} }} "
        "for i1 in 0..{iv} {{ for j1 in 0..{jv} {{ for jj1 in 0..2 {{ C[{row_of_i1}, j1*2*{in_row} "
        "+ {pair} * 2 + jj1] = {acc1} @ C }} }} }} }} }} }}",
        fmt::arg("type", type), fmt::arg("sum", sum()),
        fmt::arg("zero", sum() == "int32" ? "0" : "0.0"), fmt::arg("a_dims", dims(a_by_k, rows())),
        fmt::arg("b_dims", dims(b_by_k, columns())), fmt::arg("rows", rows()),
        fmt::arg("columns", columns()), fmt::arg("swizzle_a", swizzles_a ? " swizzle 1" : ""),
        fmt::arg("swizzle_b", swizzles_b ? " swizzle 1" : ""), fmt::arg("unit", unit),
        fmt::arg("n", n),
        fmt::arg("acc_shape", has_row_pairs  ? fmt::format("{}, 2, {}", jv, iv)
                              : sums_by_tile ? fmt::format("{}, {}, 2", jv, iv)
                                             : fmt::format("{}, {}, 2", iv, jv)),
        fmt::arg("iv", iv), fmt::arg("jv", jv),
        fmt::arg("a_shape", shape(a_by_k, rows(), a_pad, first_a_row)),
        fmt::arg("b_shape", shape(b_by_k, columns(), b_pad, first_b_row)),
        fmt::arg("fill_a", fill("a", "A", a_by_k, rows(), first_a_row)),
        fmt::arg("fill_b", fill("b", "B", b_by_k, columns(), first_b_row)),
        fmt::arg("acc0", acc("i0", "j0", "jj0")), fmt::arg("acc", acc("iv", "jv", "jj")),
        fmt::arg("acc1", acc("i1", "j1", "jj1")), fmt::arg("k_split", k_split),
        fmt::arg("k_depth", depth / k_split),
        fmt::arg("a", factor("a", at(a_by_k, first_a_row, i, k))),
        fmt::arg("b", factor("b", at(b_by_k, first_b_row, j, k))),
        fmt::arg("row_of_i1", row_of("i1")), fmt::arg("in_row", in_row), fmt::arg("pair", pair));
  }
};

std::string Generate(const Product& product) {
  const StatusOr<ir::Program> program = ir::ParseProgram(product.Text());
  if (!program.ok()) return fmt::format("{}\n{}", Message(program.status()), product.Text());
  const StatusOr<CudaSource> source = GenerateCuda(*program);
  return source.ok() ? source->text : std::string(Message(source.status()));
}

std::string Kernel(const Product& product) {
  const std::string text = Generate(product);
  return text.substr(std::min(text.find("__global__"), text.size()));
}

void ExpectRight(const Product& product) {
  SCOPED_TRACE(product.Text());
  // The units leave out the last bits of float32.
  const double tolerance = product.type == "float32" ? 1e-2 : 1e-5;
  std::optional<Cubin> cubin;
  ExpectRightProgram(product.Text(), {.tolerance = tolerance}, &cubin);
  // Only code for sm_90a can have products of warpgroups.
  if (cubin.has_value()) {
    EXPECT_EQ(cubin->arch, product.unit == 2 ? "sm_90a" : "sm_90");
  }
}

TEST(MatrixWarpgroup, OperandsOfEveryLayout) {
  for (const bool a_by_k : {false, true}) {
    for (const bool b_by_k : {false, true}) {
      const Product product{.a_by_k = a_by_k, .b_by_k = b_by_k};
      ExpectRight(product);
      EXPECT_THAT(Kernel(product),
                  AllOf(HasSubstr(fmt::format("multiply_warpgroup_f16<64, {}>(&acc[0], &acc[16], ",
                                              b_by_k ? 1 : 0)),
                        HasSubstr("fence_async_proxy();\n  __syncthreads();"),
                        Not(HasSubstr("f16_to_float"))));
    }
  }
}

// Rows of 128, 64 and 32 bytes, several panels of each, and parts of one.
TEST(MatrixWarpgroup, EveryWidthOfRows) {
  for (const bool b_by_k : {false, true}) {
    for (const int jv : {2, 4, 6, 8, 12, 16, 20, 32})
      ExpectRight({.b_by_k = b_by_k, .jv = jv, .depth = jv % 4 == 0 ? 64 : 32});
    for (const int depth : {16, 32, 48, 64, 96, 128})
      ExpectRight({.b_by_k = b_by_k, .jv = 4, .depth = depth});
  }
  EXPECT_THAT(Kernel({.jv = 16}), HasSubstr("matrix_descriptor<128, 8192, 1024>"));
  EXPECT_THAT(Kernel({.jv = 12}), HasSubstr("matrix_descriptor<64, 4096, 512>"));
  EXPECT_THAT(Kernel({.b_by_k = false}), HasSubstr("matrix_descriptor<128, 16, 1024>"));
}

// Rows that are padded to whole lines: the units read parts of the last panel.
TEST(MatrixWarpgroup, PaddedRowsOfWholeLines) {
  for (const auto& [jv, pad] : {std::pair(10, 48), {12, 32}, {14, 16}, {18, 48}, {28, 32}})
    ExpectRight({.jv = jv, .b_pad = pad});
  EXPECT_THAT(Kernel({.jv = 12, .b_pad = 32}), HasSubstr("matrix_descriptor<128, 8192, 1024>"));
}

TEST(MatrixWarpgroup, SeveralWarpgroupsAndTilesOfRows) {
  ExpectRight({.warps = 8, .iv = 2});
  ExpectRight({.warps = 4, .iv = 4, .jv = 4});
  ExpectRight({.b_by_k = false, .warps = 8, .iv = 4, .jv = 6});
}

TEST(MatrixWarpgroup, BFloats) { ExpectRight({.type = "bfloat16"}); }

// Of other types the neighbours are along the sum.
TEST(MatrixWarpgroup, TypesOfEveryWidth) {
  for (const char* type : {"float32", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"}) {
    for (const int first_a_row : {0, 8}) {
      for (const int jv : {2, 6, 8, 32})
        ExpectRight({.b_by_k = false, .jv = jv, .type = type, .first_a_row = first_a_row});
    }
  }
  EXPECT_THAT(Kernel({.b_by_k = false, .type = "int8"}),
              HasSubstr("multiply_warpgroup_s8<64, 0>(&acc[0], &acc[16], matrix_descriptor<64, 16, "
                        "512>(&a["));
  EXPECT_THAT(Kernel({.b_by_k = false, .type = "float32", .first_a_row = 8}),
              HasSubstr("round_tiles(a_tiles);"));
}

// Rows that follow each other are read from shared memory; those of a window are not.
TEST(MatrixWarpgroup, TheFirstFactorIsReadByTheUnitsOrByThreads) {
  for (const int warps : {4, 8, 12}) {
    for (const int iv : {2, 4}) {
      for (const int depth : {16, 32, 64, 128}) {
        const Product product{.b_by_k = false, .warps = warps, .iv = iv, .jv = 6, .depth = depth};
        ExpectRight(product);
        EXPECT_THAT(Kernel(product), Not(HasSubstr("load_tiles")));
      }
    }
  }
  for (const int first_a_row : {1, 8}) {
    const Product product{.first_a_row = first_a_row};
    ExpectRight(product);
    EXPECT_THAT(Kernel(product), HasSubstr("load_tiles"));
  }
}

TEST(MatrixWarpgroup, LongSumsInLoops) {
  const Product product{.jv = 4, .depth = 512, .k_split = 8};
  ExpectRight(product);
  EXPECT_THAT(Kernel(product), AllOf(HasSubstr("for (int ko = 0; ko < 8; ++ko) {\n"),
                                     HasSubstr("wait_for_sums<0>();\n")));
}

// A text without one of its calls is wrong on a GPU, mostly by chance; here always.
TEST(MatrixWarpgroup, EveryCallIsNeeded) {
  const Product product{.depth = 128, .k_split = 2};
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(product.Text()));
  for (const std::string_view call :
       {"fence_async_proxy();", "start_products();", "commit_products();"}) {
    SCOPED_TRACE(call);
    EXPECT_DEATH((void)EmulateWithout(program, call), "");
  }
  // Nor does it do to wait as one does where no sums are read.
  for (const std::string_view instead : {"", "wait_for_products<0>();"}) {
    ASSERT_OK_AND_ASSIGN(const ir::NDArray found,
                         EmulateWithout(program, "wait_for_sums<0>();", instead));
    EXPECT_TRUE(std::isnan(found.GetDouble(0))) << instead;
  }
  ASSERT_OK_AND_ASSIGN(const ir::NDArray right, EmulateWithout(program, "nothing"));
  EXPECT_FALSE(std::isnan(right.GetDouble(0)));
}

TEST(MatrixWarpgroup, OneWarpReadsSwizzledTilesToo) {
  for (const bool a_by_k : {false, true}) {
    for (const bool b_by_k : {false, true}) {
      for (const int jv : {2, 3, 4, 8, 16})
        ExpectRight(
            {.a_by_k = a_by_k, .b_by_k = b_by_k, .warps = 2, .jv = jv, .depth = 32, .unit = 1});
    }
  }
  EXPECT_THAT(Kernel({.unit = 1}), HasSubstr("a[swizzled<56>("));
  EXPECT_THAT(Kernel({.unit = 1, .swizzles_a = false}), Not(HasSubstr(" = A[swizzled")));
}

// Of a row several warps have columns: 8 x 4 threads of the program are a warp.
TEST(MatrixWarps, BesideEachOther) {
  for (const auto& [warps, columns] : {std::pair{2, 2}, {4, 2}, {4, 4}, {8, 2}, {8, 8}}) {
    for (const bool b_by_k : {false, true}) {
      const Product product{.b_by_k = b_by_k,
                            .warps = warps,
                            .jv = 4,
                            .depth = 32,
                            .unit = 1,
                            .warp_columns = columns};
      ExpectRight(product);
    }
  }
  EXPECT_THAT(Kernel({.warps = 4, .jv = 4, .unit = 1, .warp_columns = 2}),
              HasSubstr("const int t = (threadIdx.x / 64 * 8 + threadIdx.x % 32 / 4) * 8 + "
                        "threadIdx.x / 32 % 2 * 4 + threadIdx.x % 4;  // 0..127"));
  EXPECT_THAT(
      Generate({.warps = 8, .warp_columns = 2}),
      HasSubstr("the second factor, b, is not the same for the threads of a column of 8 x 4"));
}

// Of a factor that comes through registers two steps are under way: more have no room beside large sums, and
// the assembler would let each product wait for the one before.
TEST(MatrixWarpgroup, TwoStepsOfRegistersAreUnderWay) {
  const auto kernel = [](int depth) {
    return Kernel({.a_by_k = true, .b_by_k = false, .depth = depth, .type = "float32"});
  };
  EXPECT_THAT(kernel(64), HasSubstr("if (k_step >= 2) wait_for_products<1>();"));
  EXPECT_THAT(kernel(16), Not(HasSubstr("wait_for_products<1>();")));
}

// The rows are the last axis of the result: threads of a column follow each other. Of 32 bits a factor
// whose neighbours are rows comes through registers so, and the other one is read by the units.
TEST(MatrixWarps, ByColumn) {
  for (const int unit : {1, 2}) {
    for (const int warps : {4, 8}) {
      for (const bool a_by_k : {false, true}) {
        for (const std::string type : {"float16", "float32"}) {
          ExpectRight({.a_by_k = a_by_k,
                       .b_by_k = false,
                       .warps = warps,
                       .depth = 32,
                       .unit = unit,
                       .type = type,
                       .sums_by_tile = true,
                       .threads_by_column = true});
        }
      }
    }
  }
  ExpectRight({.a_by_k = true,
               .b_by_k = false,
               .depth = 32,
               .type = "float32",
               .threads_by_column = true,
               .has_row_pairs = true});
  EXPECT_THAT(Kernel({.a_by_k = true,
                      .b_by_k = false,
                      .type = "float32",
                      .threads_by_column = true,
                      .has_row_pairs = true}),
              HasSubstr("multiply_warpgroup_tf32<64, 0, 4, 2>(&acc[0], &acc[1], a_tiles[0]"));
  EXPECT_THAT(Kernel({.a_by_k = true,
                      .b_by_k = false,
                      .type = "float32",
                      .sums_by_tile = true,
                      .threads_by_column = true}),
              AllOf(HasSubstr("const int t = threadIdx.x % 4 * 32 + threadIdx.x / 4;"),
                    HasSubstr("multiply_warpgroup_tf32<64, 0, 4>(&acc[0], &acc[2], a_tiles")));
}

TEST(MatrixWarpgroup, WhatDoesNotFitIsRefused) {
  const struct {
    Product product;
    std::string why;
  } kCases[] = {
      {{.warps = 2}, "a block has 64 threads, expected a multiple of 128"},
      {{.swizzles_b = false}, "b is not swizzled, which the units of four warps need"},
      {{.type = "float32"},
       "b can't be read by the units of four warps: its neighbours are not along the sum"},
      {{.jv = 3}, "b can't be read by the units of four warps: its rows are no multiple of 32"},
      {{.jv = 34}, "has 272 columns, at most 256 can be"},
      {{.jv = 4, .b_pad = 32, .column = "t // 32 % 2 * 32"},
       "the second factor, b, is not the same for the four warps"},
      {{.first_b_row = 4}, "it does not start in a row that is a multiple of 8"},
      {{.b_by_k = false, .first_b_row = 4}, "it does not start in a row that is a multiple of 8"},
      {{.depth = 24}, "no loop of the sum has a multiple of 16 iterations"},
  };
  for (const auto& [product, why] : kCases) {
    EXPECT_THAT(Generate(product),
                AllOf(HasSubstr("matrix units can't compute stage 's': "), HasSubstr(why)))
        << product.Text();
  }
}

TEST(MatrixWarpgroup, RowsThatCantBeSwizzledAreRefused) {
  EXPECT_THAT(Generate({.unit = 1, .b_pad = 4}),
              HasSubstr("stage 'b' can't be swizzled: its rows are no multiple of 16 bytes"));
}

TEST(MatrixWarpgroup, OnlyOneArchitectureHasThem) {
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(Product().Text()));
  EXPECT_OK(CheckCudaProgram(program, {}, *target::ParseTarget("cuda -arch=sm_90")));
  for (const int arch : {80, 100}) {
    EXPECT_THAT(
        CheckCudaProgram(program, {}, *target::ParseTarget(fmt::format("cuda -arch=sm_{}", arch))),
        StatusIs(StatusCode::kInvalidArgument,
                 HasSubstr("matrix units as only sm_90 has them, the target is")));
  }
}

}  // namespace
}  // namespace kiln::codegen
