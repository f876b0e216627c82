#include "compiler/features/features.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/features/feature_columns.h"
#include "compiler/features/row_stages.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"

namespace kiln::features {
namespace {

// Rows of a program text, read by column name and without the logarithm.
class Rows {
 public:
  Rows(std::string_view text, std::string_view target_text, target::HardwareParams hardware = {},
       device::DeviceModel device = {}) {
    auto program = ir::ParseProgram(text);
    KILN_CHECK(program.ok(), "{}", Message(program.status()));
    const auto target = target::ParseTarget(target_text);
    if (target->is_gpu()) device = device::FilledGpu(device, target->GpuArch());
    rows_ = ExtractFeatures(*program, *target, hardware, device);
    EXPECT_EQ(rows_, ExtractFeatures(*program, *target, hardware, device));
  }

  int size() const { return rows_.rows(); }
  float Raw(int row, std::string_view name) const {
    const auto names = FeatureNames();
    const auto it = std::find(names.begin(), names.end(), name);
    KILN_CHECK(it != names.end(), "no column {}", name);
    return rows_.row(row)[static_cast<size_t>(it - names.begin())];
  }
  double Value(int row, std::string_view name) const {
    const double x = Raw(row, name);
    return std::copysign(std::exp2(std::fabs(x)) - 1, x);
  }

 private:
  FloatMatrix rows_;
};

// The tolerance is relative, because logarithms are in single precision.
#define EXPECT_COLUMN(rows, row, name, expected) \
  EXPECT_NEAR((rows).Value(row, name), expected, 2e-5 * std::fabs(expected) + 1e-6) << (name)

TEST(Features, AnInstructionHasThoseOfItsBody) {
  const auto rows = [](std::string_view begin, std::string_view end) {
    const StatusOr<ir::Program> program = ir::ParseProgram(fmt::format(
        "program(a: input int8[64], b: input int8[64], c: output int32[1]) {{ stage s kernel k {{ "
        "for k0 in 0..16 {{ {} for k1 in 0..4 {{ c[0] = c[0] + int32(a[k0*4 + k1])*int32(b[k0*4 + "
        "k1]) @ s }} {} }} }} }}",
        begin, end));
    KILN_CHECK(program.ok(), "{}", Message(program.status()));
    const auto target = target::ParseTarget("cuda -arch=sm_90");
    return ExtractFeatures(*program, *target, {}, device::FilledGpu({}, 90));
  };
  EXPECT_EQ(rows("instruction dp4a {", "}"), rows("", ""));
}

TEST(Features, NamesAreUnique) {
  const auto names = FeatureNames();
  EXPECT_EQ(NumFeatures(), col::kNumColumns);
  EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()).size(), names.size());
}

// Returns the names of TVM v0.14 (GetPerStoreFeatureName of feature.cc), in its order.
std::vector<std::string> NamesOfTvm() {
  std::vector<std::string> names;
  const auto add = [&](std::string_view prefix, std::initializer_list<std::string_view> some) {
    for (const std::string_view name : some) names.push_back(fmt::format("{}{}", prefix, name));
  };
  for (const char* type : {"float", "int"}) {
    add(std::string(type) + "_",
        {"mad", "addsub", "mul", "divmod", "cmp", "mathfunc", "otherfunc"});
  }
  add("", {"bool_op", "select_op"});
  for (const char* annotation : {"vec_", "unroll_", "parallel_"}) {
    add(annotation, {"num", "prod", "len", "type_kPosNone", "type_kPosInnerSpatial",
                     "type_kPosMiddleSpatial", "type_kPosOuterSpatial", "type_kPosInnerReduce",
                     "type_kPosMiddleReduce", "type_kPosOuterReduce", "type_kPosMixed"});
  }
  add("", {"is_gpu", "blockIdx_x_len", "blockIdx_y_len", "blockIdx_z_len", "threadIdx_x_len",
           "threadIdx_y_len", "threadIdx_z_len", "vthread_len"});
  for (int buffer = 0; buffer < 5; ++buffer) {
    add(fmt::format("B{}.", buffer),
        {"acc_type_kRead", "acc_type_kWrite", "acc_type_kReadWrite", "bytes", "unique_bytes",
         "lines", "unique_lines", "reuse_type_kLoopMultipleRead",
         "reuse_type_kSerialMultipleReadWrite", "reuse_type_kNoReuse", "reuse_dis_iter",
         "reuse_dis_bytes", "reuse_ct", "bytes_d_reuse_ct", "unique_bytes_d_reuse_ct",
         "lines_d_reuse_ct", "unique_lines_d_reuse_ct", "stride"});
  }
  for (int i = 0; i < 10; ++i) names.push_back(fmt::format("arith_intensity_curve_{}", i));
  add("", {"alloc_size", "alloc_prod", "alloc_outer_prod", "alloc_inner_prod", "outer_prod",
           "num_loops", "auto_unroll_max_step"});
  return names;
}

TEST(Features, TheFirstNamesAreThoseOfTvm) {
  const auto names = FeatureNames();
  const std::vector<std::string> expected = NamesOfTvm();
  ASSERT_EQ(expected.size(), 164u);
  ASSERT_GT(names.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(names[i], expected[i]) << i;
}

TEST(Features, AProgramWithoutStoresHasNoRows) {
  const FloatMatrix rows = ExtractFeatures(ir::Program(), *target::ParseTarget("llvm"), {}, {});
  EXPECT_EQ(rows.rows(), 0);
  EXPECT_EQ(rows.columns(), NumFeatures());
}

constexpr std::string_view kMatmul = R"(
program(A: input float32[512, 512], B: input float32[512, 512], C: output float32[512, 512]) {
  stage C auto_unroll 16
  kernel C {
    parallel i0 in 0..32 {
      for j0 in 0..64 {
        unroll k in 0..512 {
          vectorize j1 in 0..8 {
            unroll i1 in 0..16 {
              C[i0*16 + i1, j0*8 + j1] = C[i0*16 + i1, j0*8 + j1] + A[i0*16 + i1, k]*B[k, j0*8 + j1] @ C
            }
          }
        }
      }
    }
  }
})";

TEST(Features, EachRowIsOfAStage) {
  constexpr std::string_view kTwoKernels = R"(
program(A: input float32[8], C: output float32[8], B: workspace float32[8]) {
  stage B
  stage C
  kernel first {
    for i in 0..8 {
      B[i] = 0.0 @ B
      if i < 4 {
        B[i] = B[i] + A[i] @ B
      }
    }
  }
  kernel second {
    for j in 0..8 {
      C[j] = B[j] @ C
    }
  }
})";
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(kTwoKernels));
  const std::vector<RowStage> expected = {
      {"first", "B", "B"}, {"first", "B", "B"}, {"second", "C", "C"}};
  EXPECT_EQ(RowStages(program), expected);
  EXPECT_EQ(ExtractFeatures(program, *target::ParseTarget("llvm"), {}, {}).rows(),
            static_cast<int>(expected.size()));
}

// There is a sixteenth of the multiply-adds, and there are no conversions.
TEST(Features, MatrixUnitsDoMoreAtOnce) {
  const auto rows_of = [](std::string_view hint) {
    return Rows(fmt::format(R"(
program(A: input float16[64, 64], C: output float32[64]) {{
  stage sum{}
  kernel k grid [1, 1, 1] block [64, 1, 1] {{
    threadIdx.x t in 0..64 {{
      alloc acc: local float32[1]
      acc[0] = 0.0 @ sum
      for k in 0..64 {{
        acc[0] = acc[0] + float32(A[t, k])*float32(A[k, t]) @ sum
      }}
      C[t] = acc[0] @ sum
    }}
  }}
}})",
                            hint),
                "cuda -arch=sm_90");
  };
  const Rows scalar = rows_of(""), matrix = rows_of(" matrix_unit 1"),
             warpgroup = rows_of(" matrix_unit 2");
  ASSERT_EQ(scalar.size(), matrix.size());
  const int sum = 1;
  EXPECT_COLUMN(scalar, sum, "float_mad", 64 * 64);
  EXPECT_COLUMN(matrix, sum, "float_mad", 64 * 64 / 16 * 1.6);
  EXPECT_COLUMN(warpgroup, sum, "float_mad", 64 * 64 / 16 * 0.84);
  // Units of four warps read their operands themselves.
  const double reads = scalar.Value(sum, "row_thread_accesses");
  EXPECT_COLUMN(matrix, sum, "row_thread_accesses", reads / 16 * 1.6);
  EXPECT_COLUMN(warpgroup, sum, "row_thread_accesses", reads / 16 * 0.84 / 16);
  EXPECT_COLUMN(scalar, sum, "float_otherfunc", 2 * 64 * 64);
  EXPECT_EQ(matrix.Raw(sum, "float_otherfunc"), 0);
}

// Returns the text of an attention of 2 x 512 queries and keys of 64 elements.
std::string OnlineSoftmax(std::string_view tile, int bulk) {
  const auto dag = dag::BuildOp("attention", "2,512,64", {.dtype = ir::kFloat16});
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  const int last = (*dag)->size() - 1;
  const auto steps = schedule::ParseSteps(
      fmt::format(R"([["OS", {}, {}], ["PR", {}, 0, "bulk_copies${}"]])", last, tile, last, bulk));
  KILN_CHECK(steps.ok(), "{}", Message(steps.status()));
  const auto state = schedule::Replay(*dag, *steps);
  KILN_CHECK(state.ok(), "{}", Message(state.status()));
  const auto program = lower::Lower(*state, {.gpu = true});
  KILN_CHECK(program.ok(), "{}", Message(program.status()));
  return ir::ProgramText(*program);
}

// Registers hold the values that threads of a warp exchange. Their loops are unrolled.
TEST(Features, AnOnlineSoftmaxIsInRegisters) {
  const Rows threads_copy(OnlineSoftmax("16, 128, 8, 2, 2", 0), "cuda -arch=sm_90"),
      bulk(OnlineSoftmax("16, 128, 8, 2, 2", 1), "cuda -arch=sm_90"),
      one_group(OnlineSoftmax("16, 128, 4, 2, 2", 1), "cuda -arch=sm_90");
  // Tiles of 128 queries, and of 128 keys and values in two buffers.
  constexpr double kTile = 128 * 64 * 2;
  EXPECT_COLUMN(bulk, 0, "kernel_shared_bytes", 5 * kTile);
  EXPECT_COLUMN(one_group, 0, "kernel_shared_bytes", 4.5 * kTile);
  // 64 scores, 32 sums, 32 weights; highest scores, totals and others of two rows each.
  EXPECT_COLUMN(bulk, 0, "kernel_registers", 64 + 32 + 32 + 12 + 24);
  EXPECT_COLUMN(one_group, 0, "kernel_registers", 64 + 32 + 32 + 12 + 24);
  EXPECT_COLUMN(bulk, 0, "kernel_register_limit", 240);
  EXPECT_COLUMN(bulk, 0, "kernel_blocks_per_core", 1);
  EXPECT_COLUMN(one_group, 0, "kernel_blocks_per_core", 3);
  std::set<float> ways, ways_of_bulk;
  double most_chains = 0;
  for (int r = 0; r < bulk.size(); ++r) {
    ways.insert(threads_copy.Raw(r, "row_async"));
    ways_of_bulk.insert(bulk.Raw(r, "row_async"));
    most_chains = std::max(most_chains, bulk.Value(r, "row_chains"));
  }
  EXPECT_EQ(ways, (std::set<float>{0, 5}));
  EXPECT_EQ(ways_of_bulk, (std::set<float>{0, 6}));
  EXPECT_NEAR(most_chains, 64, 1e-3);
}

// The figures are computed by hand for 512^3 iterations.
TEST(Features, MatmulAsTheFactsHaveIt) {
  target::HardwareParams hardware;
  hardware.num_cores = 8;
  const Rows rows(kMatmul, "llvm", hardware);
  ASSERT_EQ(rows.size(), 1);
  const double trips = 512.0 * 512 * 512;
  EXPECT_COLUMN(rows, 0, "outer_prod", trips);
  EXPECT_COLUMN(rows, 0, "float_mad", trips);
  EXPECT_EQ(rows.Raw(0, "float_mul"), 0);
  EXPECT_EQ(rows.Raw(0, "float_addsub"), 0);
  // Index expressions of the store, i0*16 + i1 and j0*8 + j1, and those of three kinds of loads:
  // two of C, one of A, one of B. Each is one multiply-add.
  EXPECT_COLUMN(rows, 0, "int_mad", 6 * trips);
  EXPECT_COLUMN(rows, 0, "vec_num", 1.0);
  EXPECT_COLUMN(rows, 0, "vec_prod", 8.0);
  EXPECT_COLUMN(rows, 0, "vec_len", 8.0);
  // The loops are i0 j0 j1 i1.
  EXPECT_EQ(rows.Raw(0, "vec_type_kPosMiddleSpatial"), 1);
  EXPECT_COLUMN(rows, 0, "unroll_num", 2.0);
  EXPECT_COLUMN(rows, 0, "unroll_prod", 512.0 * 16);
  EXPECT_COLUMN(rows, 0, "unroll_len", 16.0);
  // k is a reduction, i1 is not.
  EXPECT_EQ(rows.Raw(0, "unroll_type_kPosMixed"), 1);
  EXPECT_COLUMN(rows, 0, "parallel_num", 1.0);
  EXPECT_COLUMN(rows, 0, "parallel_prod", 32.0);
  EXPECT_EQ(rows.Raw(0, "parallel_type_kPosOuterSpatial"), 1);
  EXPECT_EQ(rows.Raw(0, "is_gpu"), 0);

  // Slots are ordered by lines: C and A have a stride of 512 floats in i1, a line for each
  // iteration. B stays in i1 and has stride 1 in j1: 512^3 / 16 / (64 / 4).
  EXPECT_EQ(rows.Raw(0, "B0.acc_type_kReadWrite"), 1);
  EXPECT_COLUMN(rows, 0, "B0.bytes", trips * 4);
  EXPECT_COLUMN(rows, 0, "B0.unique_bytes", 512.0 * 512 * 4);
  EXPECT_COLUMN(rows, 0, "B0.lines", trips);
  EXPECT_COLUMN(rows, 0, "B0.unique_lines", 512.0 * 512 / 16);
  EXPECT_EQ(rows.Raw(0, "B0.reuse_type_kLoopMultipleRead"), 1);
  EXPECT_COLUMN(rows, 0, "B0.reuse_dis_iter", 8.0 * 16);
  EXPECT_COLUMN(rows, 0, "B0.reuse_dis_bytes", (8.0 * 16 + 8 + 16) * 4);
  EXPECT_COLUMN(rows, 0, "B0.reuse_ct", 512.0);
  EXPECT_COLUMN(rows, 0, "B0.bytes_d_reuse_ct", trips * 4 / 512);
  EXPECT_COLUMN(rows, 0, "B0.stride", 512.0);
  // A does not change with j1; inside j1 are 16 elements of C, 16 of A and 1 of B.
  EXPECT_EQ(rows.Raw(0, "B1.acc_type_kRead"), 1);
  EXPECT_COLUMN(rows, 0, "B1.reuse_dis_iter", 16.0);
  EXPECT_COLUMN(rows, 0, "B1.reuse_dis_bytes", 33.0 * 4);
  EXPECT_COLUMN(rows, 0, "B1.reuse_ct", 8.0);
  // B does not change in the innermost loop.
  EXPECT_COLUMN(rows, 0, "B2.lines", trips / 256);
  EXPECT_COLUMN(rows, 0, "B2.reuse_dis_iter", 1.0);
  EXPECT_COLUMN(rows, 0, "B2.reuse_dis_bytes", 12.0);
  EXPECT_COLUMN(rows, 0, "B2.reuse_ct", 16.0);
  EXPECT_EQ(rows.Raw(0, "B2.stride"), 0);
  EXPECT_EQ(rows.Raw(0, "B3.bytes"), 0);
  // The whole nest does 2 * 512^3 operations on three matrices of a MiB.
  EXPECT_COLUMN(rows, 0, "arith_intensity_curve_9", 2 * trips / (3 * 512.0 * 512 * 4));
  EXPECT_COLUMN(rows, 0, "alloc_size", 512.0 * 512 * 4);
  EXPECT_COLUMN(rows, 0, "alloc_outer_prod", 1.0);
  EXPECT_COLUMN(rows, 0, "alloc_inner_prod", trips);
  EXPECT_COLUMN(rows, 0, "num_loops", 5.0);
  EXPECT_COLUMN(rows, 0, "auto_unroll_max_step", 16.0);

  EXPECT_COLUMN(rows, 0, "row_flops", 2 * trips);
  EXPECT_COLUMN(rows, 0, "row_reduce_len", 512.0);
  EXPECT_COLUMN(rows, 0, "row_chains", 128.0);
  EXPECT_COLUMN(rows, 0, "row_lanes", 8.0);
  EXPECT_COLUMN(rows, 0, "row_serial_trips", 64.0);
  EXPECT_COLUMN(rows, 0, "kernel_parallel_tasks", 32.0);
  EXPECT_COLUMN(rows, 0, "kernel_waves", 4.0);
  EXPECT_COLUMN(rows, 0, "kernel_unique_bytes", 3 * 512.0 * 512 * 4);
  // 32 KiB hold all elements that j1 and i1 touch, but not all k: 16 rows of A and 512 rows of B, a
  // line each, are 32 KiB each. So A and B are read again for every (i0, j0). The 16 rows of C are
  // read once for every i0, because C does not change with k.
  EXPECT_COLUMN(rows, 0, "row_miss_32k", 2 * 32768.0 * 64 * 32 + 32768.0 * 32);
}

// One block of 64 threads per 64 rows: threads fetch a column of A (rows of 8 floats, 32 bytes
// apart), then sum it over shared memory in steps of two floats.
constexpr std::string_view kBlocks = R"(
program(A: input float32[256, 8], C: output float32[256]) {
  stage A_shared
  stage C
  kernel C grid [4, 1, 1] block [64, 1, 1] {
    blockIdx.x b in 0..4 {
      threadIdx.x t in 0..64 {
        alloc C_local: local float32[1]
        C_local[0] = 0.0 @ C
        for k in 0..8 {
          barrier
          alloc A_shared: shared float32[128]
          A_shared[t] = A[b*64 + t, k] @ A_shared
          if t < 32 {
            A_shared[t*2 + 1] = 0.0 @ A_shared
          }
          barrier
          C_local[0] = C_local[0] + A_shared[t*2]*2.0 @ C
        }
        C[b*64 + t] = C_local[0] @ C
      }
    }
  }
})";

TEST(Features, BlocksThreadsAndMemoryOfAGpu) {
  target::HardwareParams hardware;
  hardware.num_cores = 132;
  hardware.warp_size = 32;
  const Rows rows(kBlocks, "cuda -arch=sm_90", hardware);
  ASSERT_EQ(rows.size(), 5);
  const int fetch = 1, clear = 2, sum = 3, store = 4;
  EXPECT_EQ(rows.Raw(fetch, "is_gpu"), 1);
  EXPECT_COLUMN(rows, fetch, "blockIdx_x_len", 4.0);
  EXPECT_COLUMN(rows, fetch, "threadIdx_x_len", 64.0);
  // A warp's threads read from 32 different sectors; A_shared is written without conflict.
  EXPECT_COLUMN(rows, fetch, "row_sectors_worst", 32.0);
  EXPECT_COLUMN(rows, fetch, "row_global_read_bytes", 4 * 2 * 8 * 32 * 32.0);
  EXPECT_COLUMN(rows, fetch, "row_thread_trips", 8.0);
  // Half of the threads are active, and all threads of the first warp.
  EXPECT_NEAR(rows.Raw(clear, "row_work"), 0.5, 0.05);
  EXPECT_EQ(rows.Raw(clear, "row_active_lanes"), 1);
  // Every second word is read, so two threads share a bank.
  EXPECT_COLUMN(rows, sum, "row_wavefronts_worst", 2.0);
  EXPECT_COLUMN(rows, sum, "row_reduce_len", 8.0);
  EXPECT_COLUMN(rows, sum, "row_flops", 2 * 256 * 8.0);
  // The buffer is filled anew for every k: eight loads, none of them kept.
  EXPECT_COLUMN(rows, sum, "row_thread_accesses", 8.0);
  EXPECT_COLUMN(rows, store, "row_global_write_bytes", 4 * 2 * 4 * 32.0);

  EXPECT_COLUMN(rows, store, "kernel_blocks", 4.0);
  EXPECT_COLUMN(rows, store, "kernel_threads", 64.0);
  EXPECT_COLUMN(rows, store, "kernel_shared_bytes", 512.0);
  EXPECT_COLUMN(rows, store, "kernel_barriers", 16.0);
  EXPECT_COLUMN(rows, store, "kernel_stages", 8.0);
  EXPECT_COLUMN(rows, store, "kernel_stage_loads", 1.0);
  EXPECT_COLUMN(rows, store, "kernel_blocks_per_core", 32.0);
  EXPECT_EQ(rows.Raw(store, "kernel_occupancy"), 1);
  EXPECT_COLUMN(rows, store, "kernel_waves", 4.0 / (132 * 32));
  EXPECT_COLUMN(rows, store, "kernel_unique_bytes", 256 * 8 * 4.0 + 256 * 4);
  EXPECT_EQ(rows.Raw(store, "kernel_split_bytes"), 0);
  for (int r = 0; r < rows.size(); ++r)
    EXPECT_EQ(rows.Raw(r, "kernel_thread_flops"), rows.Raw(0, "kernel_thread_flops"));
}

// A vectorized loop takes as many instructions as registers: 36 floats are three registers of 12
// floats, in each of 10 rows.
TEST(Features, LongVectorLoopsAreSeveralInstructions) {
  target::HardwareParams hardware;
  hardware.vector_unit_bytes = 64;
  const Rows rows(R"(
program(A: input float32[10, 36], C: output float32[10, 36]) {
  stage C
  kernel C {
    for i in 0..10 {
      vectorize j in 0..36 {
        C[i, j] = A[i, j]*2.0 @ C
      }
    }
  }
})",
                  "llvm", hardware);
  ASSERT_EQ(rows.size(), 1);
  EXPECT_COLUMN(rows, 0, "row_thread_accesses", 10 * 3 * 2.0);
  EXPECT_COLUMN(rows, 0, "B0.vector_bytes", 48.0);
  // There is a product for each, and two instructions for each iteration of the loop.
  EXPECT_COLUMN(rows, 0, "row_thread_instructions", 10 * 3 * 3 + 2 * 10.0);
}

// Makes rows for sums of columns with the given loop over results and the given index of the read.
Rows ColumnSums(std::string_view loop, std::string_view read, int results = 64) {
  target::HardwareParams hardware;
  hardware.vector_unit_bytes = 64;
  return Rows(fmt::format(R"(
program(A: input float32[4, 512], C: output float32[{2}]) {{
  stage C
  kernel C {{
    {0} i in 0..{2} {{
      unroll k in 0..4 {{
        C[i] = C[i] + A[k, {1}] @ C
      }}
    }}
  }}
}})",
                          loop, read, results),
              "llvm", hardware);
}

// LLVM vectorizes scalar loops whose iterations store side by side. 64 floats take 4 registers: the
// sums are accessed once each way, and the terms four times.
TEST(Features, ScalarLoopsThatLlvmVectorizesCountAsVectors) {
  for (const char* loop : {"for", "parallel"}) {
    const Rows rows = ColumnSums(loop, "i");
    ASSERT_EQ(rows.size(), 1);
    EXPECT_COLUMN(rows, 0, "row_lanes", 64.0);
    EXPECT_COLUMN(rows, 0, "row_vector_bytes", 256.0);
    EXPECT_COLUMN(rows, 0, "row_chains", 64.0);
    EXPECT_COLUMN(rows, 0, "row_thread_accesses", 4 * 2 + 4 * 4.0);
  }
  // A loop that reads with a long stride is not vectorized.
  EXPECT_COLUMN(ColumnSums("for", "i*8"), 0, "row_lanes", 1.0);
}

// Two vectors and a shuffle give a vector of every second element. A vector of every eighth element
// is made of 16 scalars.
TEST(Features, ShortStridesAreReadInVectors) {
  EXPECT_COLUMN(ColumnSums("vectorize", "i", 16), 0, "row_thread_accesses", 2 + 4 * 1.0);
  EXPECT_COLUMN(ColumnSums("vectorize", "i*2", 16), 0, "row_thread_accesses", 2 + 4 * 2.0);
  EXPECT_COLUMN(ColumnSums("vectorize", "i*8", 16), 0, "row_thread_accesses", 2 + 4 * 16.0);
}

// Eight vectors stay in registers while the loop around the body runs 32 times; 32 vectors do not.
TEST(Features, OperandsStayInRegistersIfTheyFit) {
  target::HardwareParams hardware;
  hardware.vector_unit_bytes = 64;
  const auto accesses = [&](int k) {
    const Rows rows(fmt::format(R"(
program(A: input float32[32, {0}], B: input float32[{0}, 16], C: output float32[32, 16]) {{
  stage C
  kernel C {{
    for i in 0..32 {{
      unroll k in 0..{0} {{
        vectorize j in 0..16 {{
          C[i, j] = C[i, j] + A[i, k]*B[k, j] @ C
        }}
      }}
    }}
  }}
}})",
                                k),
                    "llvm", hardware);
    return rows.Value(0, "row_thread_accesses");
  };
  EXPECT_NEAR(accesses(8), 32 * 2 + 32 * 8 + 8, 1e-2);
  EXPECT_NEAR(accesses(32), 32 * 2 + 32 * 32 + 32 * 32, 1e-1);
}

// A block of 16 by 8 is eight vectors, even if the loop over lanes steps through it with a long
// stride.
TEST(Features, BlocksThatAreReadAcrossStayInRegisters) {
  target::HardwareParams hardware;
  hardware.vector_unit_bytes = 64;
  const Rows rows(R"(
program(A: input float32[32, 8], B: input float32[16, 8], C: output float32[32, 16]) {
  stage C
  kernel C {
    for i in 0..32 {
      unroll k in 0..8 {
        vectorize j in 0..16 {
          C[i, j] = C[i, j] + A[i, k]*B[j, k] @ C
        }
      }
    }
  }
})",
                  "llvm", hardware);
  EXPECT_COLUMN(rows, 0, "row_thread_accesses", 32 * 2 + 32 * 8 + 16 * 8.0);
}

// Tiles of 10 by 8 do not divide an image of 35 by 35. The estimate must not depend on chance,
// because a search takes the program whose share is most underestimated.
TEST(Features, ShareOfTheIterationsThatGuardsLetThrough) {
  const auto share_of = [](int rows, std::string_view guard) {
    return Rows(fmt::format(R"(
program(A: input float32[40, 40], C: output float32[40, 40]) {{
  stage C
  kernel C {{
    parallel t in 0..20 {{
      for y in 0..{} {{
        for x in 0..8 {{
          if {} {{
            C[y + (t // 10)*20 + (t % 2)*10, x + ((t // 2) % 5)*8] = A[y, x]*2.0 @ C
          }}
        }}
      }}
    }}
  }}
}})",
                            rows, guard),
                "llvm")
        .Raw(0, "row_work");
  };
  constexpr std::string_view kColumns = "x + ((t // 2) % 5)*8 < 35";
  constexpr std::string_view kRows = "y + (t // 10)*20 + (t % 2)*10 < 35";
  EXPECT_FLOAT_EQ(share_of(10, kColumns), 35.0 / 40);
  EXPECT_FLOAT_EQ(share_of(10, kRows), 35.0 / 40);
  // All 320 iterations are looked at, and rows of 2 are always in the image.
  const std::string both = fmt::format("{} && {}", kColumns, kRows);
  EXPECT_FLOAT_EQ(share_of(2, both), 35.0 / 40);
  // There are more iterations than are looked at one by one.
  EXPECT_NEAR(share_of(10, both), 35.0 / 40 * 35 / 40, 0.02);
  EXPECT_NEAR(share_of(500, "y + t*8 < 50"), 0.0182, 0.004);
}

// A guard of iterations says nothing of a warp's threads: a copy ahead moves what its iterations
// do, however few or many these are.
TEST(Features, CopiesOfSomeIterationsAreThoseOfAllThreads) {
  const auto bytes_of = [](int copies) {
    const Rows rows(fmt::format(R"(
program(A: input float32[4, 64], C: output float32[4, 64]) {{
  stage C
  kernel C grid [1, 1, 1] block [64, 1, 1] {{
    threadIdx.x t in 0..64 {{
      for k in 0..4 {{
        if k < {} {{ C[k, t] = A[k, t] @ C }}
      }}
    }}
  }}
}})",
                                copies),
                    "cuda");
    return rows.Value(0, "kernel_global_bytes");
  };
  for (int copies = 1; copies <= 4; ++copies)
    EXPECT_NEAR(bytes_of(copies), copies * 64 * 4 * 2.0, 1) << copies;
}

// The registers that a thread may have of a multiprocessor's 65,536, given the size of the block,
// or the number of blocks that is asked for.
TEST(Features, RegistersThatAreMissing) {
  const auto rows_of = [](int threads, std::string_view min_blocks) {
    return Rows(fmt::format(R"(
program(A: input float32[4, {0}], C: output float32[4, {0}]) {{
  stage C
  kernel C grid [4, 1, 1] block [{0}, 1, 1]{1} {{
    blockIdx.x b in 0..4 {{
      threadIdx.x t in 0..{0} {{
        alloc C_local: local float32[75]
        unroll k in 0..75 {{
          C_local[k] = 2.0 @ C
        }}
        C[b, t] = A[b, t] + C_local[74] @ C
      }}
    }}
  }}
}})",
                            threads, min_blocks),
                "cuda -arch=sm_90");
  };
  const Rows roomy = rows_of(128, ""), large = rows_of(1024, ""),
             forced = rows_of(128, " min_blocks 8");
  // The array has 75 registers, the operand 1, and all other values 24.
  EXPECT_COLUMN(roomy, 0, "kernel_registers", 100.0);
  EXPECT_COLUMN(roomy, 0, "kernel_register_limit", 255.0);
  EXPECT_COLUMN(roomy, 0, "kernel_spilled", 0.0);
  EXPECT_COLUMN(large, 0, "kernel_register_limit", 64.0);
  EXPECT_COLUMN(large, 0, "kernel_spilled", 36.0);
  EXPECT_COLUMN(large, 0, "kernel_blocks_per_core", 1.0);
  EXPECT_COLUMN(forced, 0, "kernel_register_limit", 64.0);
  EXPECT_COLUMN(forced, 0, "kernel_spilled", 36.0);
  EXPECT_COLUMN(forced, 0, "kernel_blocks_per_core", 8.0);
}

// The same program fills a device of 20 multiprocessors, each with little shared memory, earlier.
TEST(Features, WavesAndResidencyFollowTheDevice) {
  device::DeviceModel small;
  small.compute_capability = 75;
  small.multiprocessors = 20;
  small.shared_bytes_per_multiprocessor = 3 << 10;
  const Rows rows(kBlocks, "cuda -arch=sm_75", {}, small);
  const int store = 4;
  // A block has 512 bytes.
  EXPECT_COLUMN(rows, store, "kernel_blocks_per_core", 6.0);
  EXPECT_COLUMN(rows, store, "kernel_waves", 4.0 / (20 * 6));
  EXPECT_COLUMN(rows, store, "program_cores", 20.0);
  EXPECT_COLUMN(rows, store, "kernel_cluster_cores", 20.0);
  EXPECT_NEAR(rows.Raw(store, "kernel_occupancy"), 6 * 64.0 / 1024, 1e-6);
}

// Half of the sums are in the other block of a cluster of two.
TEST(Features, ClustersOfBlocks) {
  target::HardwareParams hardware;
  hardware.num_cores = 132;
  hardware.warp_size = 32;
  const auto rows_of = [&](int cluster) {
    return Rows(fmt::format(R"(
program(A: input float32[4, {0}, 128], C: output float32[4, 128]) {{
  stage part
  stage C
  kernel C grid [4, 1, 1] block [32, 1, 1] cluster {0} {{
    blockIdx.x b in 0..4 {{
      alloc part: cluster float32[{0}, 128]
      cluster p in 0..{0} {{
        threadIdx.x t in 0..32 {{
          vectorize v in 0..4 {{
            part[p, t*4 + v] = A[b, p, t*4 + v] @ part
          }}
        }}
      }}
      cluster_barrier
      cluster q in 0..{0} {{
        threadIdx.x u in 0..32 {{
          vectorize w in 0..4 {{
            C[b, u*4 + w] = part[0, u*4 + w] + part[1, u*4 + w] @ C
          }}
        }}
      }}
      cluster_barrier
    }}
  }}
}})",
                            cluster),
                "cuda -arch=sm_90", hardware);
  };
  const Rows rows = rows_of(2);
  ASSERT_EQ(rows.size(), 2);
  EXPECT_COLUMN(rows, 1, "blockIdx_x_len", 8.0);
  EXPECT_COLUMN(rows, 1, "kernel_blocks", 8.0);
  EXPECT_COLUMN(rows, 1, "kernel_cluster", 2.0);
  EXPECT_COLUMN(rows, 1, "kernel_cluster_cores", 132.0);
  EXPECT_COLUMN(rows, 1, "kernel_cluster_barriers", 2.0);
  EXPECT_COLUMN(rows, 1, "kernel_barriers", 0.0);
  EXPECT_COLUMN(rows, 1, "kernel_thread_remote_bytes", 32.0);
  // The bytes of one part.
  EXPECT_COLUMN(rows, 1, "kernel_shared_bytes", 512.0);
  EXPECT_COLUMN(rows, 1, "kernel_split_bytes", 0.0);
  EXPECT_EQ(rows.Raw(0, "B0.is_global") + rows.Raw(0, "B1.is_global"), 1);
  EXPECT_EQ(rows.Raw(0, "B0.is_shared") + rows.Raw(0, "B1.is_shared"), 1);
  EXPECT_COLUMN(rows_of(8), 1, "kernel_cluster_cores", 120.0);
  EXPECT_COLUMN(rows_of(8), 1, "kernel_waves", 32.0 / (120 * 32));
}

// B is read in the iterations of the loops that have just written it.
TEST(Features, WhatWasJustWrittenIsReusedSerially) {
  const Rows rows(R"(
program(A: input float32[64, 32], C: output float32[64, 32]) {
  stage B
  stage C
  kernel C {
    for i in 0..64 {
      alloc B: local float32[1, 32]
      for j in 0..32 {
        B[0, j] = A[i, j] + 1.0 @ B
        C[i, j] = B[0, j]*2.0 @ C
      }
    }
  }
})",
                  "llvm");
  ASSERT_EQ(rows.size(), 2);
  // C is written, then B is read. Both have as many lines as a row of C.
  const int b = 1;
  EXPECT_EQ(rows.Raw(1, "B1.reuse_type_kSerialMultipleReadWrite"), b);
  EXPECT_COLUMN(rows, 1, "B1.reuse_dis_iter", 1.0);
  // Bytes that are written and read: 2 * 32 * 4 / 32.
  EXPECT_COLUMN(rows, 1, "B1.reuse_dis_bytes", 8.0);
  EXPECT_COLUMN(rows, 1, "B1.reuse_ct", 1.0);
  EXPECT_COLUMN(rows, 1, "alloc_outer_prod", 1.0);
  EXPECT_COLUMN(rows, 0, "alloc_outer_prod", 64.0);
  EXPECT_COLUMN(rows, 0, "alloc_inner_prod", 32.0);
}

// A layout and its padding let a warp's accesses go to different banks.
TEST(Features, LayoutsOfSharedTilesShowInTheirWavefronts) {
  const auto wavefronts = [](std::string_view shape, std::string_view stored,
                             std::string_view read) {
    const Rows rows(fmt::format(R"(
program(A: input float32[64], C: output float32[32, 8]) {{
  stage S
  stage C
  kernel C grid [1, 1, 1] block [32, 1, 1] {{
    threadIdx.x t in 0..32 {{
      alloc S: shared float32[{}]
      for m in 0..8 {{ S[{}] = A[t] @ S }}
      barrier
      for r in 0..8 {{ C[t, r] = S[{}] @ C }}
    }}
  }}
}})",
                                shape, stored, read),
                    "cuda");
    return rows.Value(0, "kernel_thread_shared_wavefronts");
  };
  // Threads store along k, which is t % 8, and read rows of 8 along m.
  const double plain = wavefronts("32, 8", "t // 8 + m * 4, t % 8", "(t // 8) * 8 + r, 3");
  EXPECT_NEAR(plain, 8 * 1 + 8 * 4, 1e-2) << "reads 64 apart";
  const double transposed = wavefronts("8, 32", "t % 8, t // 8 + m * 4", "3, (t // 8) * 8 + r");
  EXPECT_NEAR(transposed, 8 * 8 + 8 * 1, 1e-2) << "stores 32 apart";
  const double padded = wavefronts("8, 36", "t % 8, t // 8 + m * 4", "3, (t // 8) * 8 + r");
  EXPECT_NEAR(padded, 8 * 1 + 8 * 1, 1e-2);
}

TEST(Features, VectorsOfAFetch) {
  const Rows rows(R"(
program(A: input float32[1024], C: output float32[1024]) {
  stage C
  kernel C grid [4, 1, 1] block [64, 1, 1] {
    blockIdx.x b in 0..4 {
      threadIdx.x t in 0..64 {
        vectorize v in 0..4 {
          C[b*256 + t*4 + v] = A[1023 - (b*256 + t*4 + v)] @ C
        }
      }
    }
  }
})",
                  "cuda");
  ASSERT_EQ(rows.size(), 1);
  // The store is a vector of 16 bytes. The reversed read is four loads, each over 16 sectors.
  EXPECT_EQ(rows.Raw(0, "B0.is_global"), 1);
  const double widths = rows.Value(0, "B0.vector_bytes") + rows.Value(0, "B1.vector_bytes");
  EXPECT_NEAR(widths, 16 + 4, 1e-3);
  EXPECT_COLUMN(rows, 0, "row_sectors_worst", 16.0);
  EXPECT_COLUMN(rows, 0, "row_thread_accesses", 5.0);
  EXPECT_COLUMN(rows, 0, "row_global_write_bytes", 4096.0);
}

}  // namespace
}  // namespace kiln::features
