#include "client/check/selftest_programs.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/instructions/matrix_unit.h"
#include "compiler/target/math.h"

namespace kiln::client {
namespace {

using codegen::CudaSource;

bool Has(const CudaSource& source, std::string_view text) {
  return source.text.find(text) != source.text.npos;
}
bool UsesShared(const CudaSource& source) {
  for (const auto& kernel : source.kernels) {
    if (kernel.static_shared_bytes + kernel.dynamic_shared_bytes > 0) return true;
  }
  return false;
}
bool UsesMuchShared(const CudaSource& source) {
  for (const auto& kernel : source.kernels) {
    if (kernel.dynamic_shared_bytes > codegen::kMaxStaticSharedBytes) return true;
  }
  return false;
}
bool SharedVectorLoads(const CudaSource& source) {
  return UsesShared(source) && Has(source, "float4");
}
// Partial results meet in shared memory.
bool AcrossThreads(const CudaSource& source) {
  return UsesShared(source) && Has(source, "__syncthreads();");
}
bool HasClusters(const CudaSource& source) {
  for (const auto& kernel : source.kernels) {
    if (kernel.cluster > 1) return true;
  }
  return false;
}
bool HasManyKernels(const CudaSource& source) { return source.kernels.size() > 1; }
bool HalfVectors(const CudaSource& source) { return Has(source, "f16_x"); }
bool IsOfCores(const CudaSource& source) { return !Has(source, "multiply_"); }
bool ByteVectors(const CudaSource& source) { return Has(source, "char_x") || Has(source, "char4"); }

// ---- matrix units

// Numbers of columns that samples have for four warps together.
constexpr int kColumns[] = {16, 32, 48, 64, 96, 128, 192, 256};

SelfTestProgram MatrixProgram(const instructions::MatrixUnit& unit, std::string kind,
                              dag::KnownWorkload workload, ir::MatrixUnitScope scope,
                              std::vector<std::string> texts) {
  workload.dtype = ir::TypeName(unit.factor).data();
  const auto is_wanted = [texts = std::move(texts)](const CudaSource& source) {
    return std::ranges::all_of(texts, [&](const std::string& text) { return Has(source, text); });
  };
  return {.kind = std::move(kind),
          .workload = workload,
          .wanted = {.is_wanted = is_wanted,
                     .samples = 2048,
                     .parameters = {{"matrix_unit_prob", 1},
                                    {"warpgroup_prob",
                                     scope == ir::MatrixUnitScope::kWarpgroup ? 1.0 : 0.0}}},
          .rounds_to_tf32 = unit.rounds};
}

// Adds programs of mma.sync, with operands that lie along the sum and across it.
void AddWarpPrograms(const instructions::MatrixUnit& unit, std::vector<SelfTestProgram>& programs) {
  const std::string call = fmt::format("multiply_tiles_{}(", unit.name),
                    shape = fmt::format("mma.sync {} m16n8k{}", unit.name, unit.depth());
  constexpr auto kWarp = ir::MatrixUnitScope::kWarp;
  programs.push_back(MatrixProgram(unit, shape, {"dense", "64,96,128"}, kWarp, {call}));
  programs.push_back(
      MatrixProgram(unit, shape + ", B across", {"matmul", "64,96,128"}, kWarp, {call}));
}

// Adds programs of wgmma: every number of columns; both factors from shared memory, and the first
// from registers.
void AddWarpgroupPrograms(const instructions::MatrixUnit& unit,
                          std::vector<SelfTestProgram>& programs) {
  constexpr auto kWarpgroup = ir::MatrixUnitScope::kWarpgroup;
  const auto call = [&](int columns, bool is_across) {
    return fmt::format("multiply_warpgroup_{}<{}, {}>(", unit.name, columns, is_across ? 1 : 0);
  };
  const auto shape = [&](int columns) {
    return fmt::format("wgmma {} m64n{}k{}", unit.name, columns, unit.depth());
  };
  for (const int columns : kColumns) {
    programs.push_back(MatrixProgram(unit, shape(columns), {"dense", "128,256,256"}, kWarpgroup,
                                     {call(columns, false)}));
  }
  // The copy engine copies tiles with rows of 128 bytes: of a matrix, of a matrix that pairs share,
  // of a window.
  const std::string copies = "copy_box(&", shared_copies = "copy_box_to_pair(&";
  programs.push_back(MatrixProgram(unit, shape(64) + ", bulk copies", {"dense", "128,256,256"},
                                   kWarpgroup, {call(64, false), copies}));
  programs.push_back(MatrixProgram(unit, shape(64) + ", copies for pairs", {"dense", "256,256,256"},
                                   kWarpgroup, {call(64, false), shared_copies}));
  if (unit.factor.bytes() != 2) return;
  programs.push_back(MatrixProgram(unit, shape(32) + ", copies of a window",
                                   {"conv2d_nhwc", "1,16,16,32,64,3,3,1,1"}, kWarpgroup,
                                   {call(32, true), "load_tiles", copies}));
  programs.push_back(MatrixProgram(unit, shape(64) + ", B across", {"matmul", "128,256,256"},
                                   kWarpgroup, {call(64, true)}));
  programs.push_back(MatrixProgram(unit, shape(64) + ", A in registers",
                                   {"conv2d_nhwc", "1,14,14,64,64,3,3,1,1"}, kWarpgroup,
                                   {call(64, true), "load_tiles"}));
  programs.push_back(MatrixProgram(unit, shape(64) + ", online softmax", {"attention", "2,256,64"},
                                   kWarpgroup, {call(64, true), "pairs of the warp's"}));
}

}  // namespace

std::vector<SelfTestProgram> SelfTestPrograms(const target::Target& target) {
  std::vector<SelfTestProgram> programs = {
      {"tiled convolution", {"conv2d_nhwc", "1,14,14,64,32,3,3,1,1", "bias,relu"}, {UsesShared}},
      {"vector loads", {"matmul", "256,256,256"}, {SharedVectorLoads}},
      {"shared memory above 48 KiB", {"matmul", "512,512,512"}, {UsesMuchShared}, 96 << 10},
      {"reduction across threads", {"softmax", "64,1000"}, {AcrossThreads}},
      {"sum of rows", {"sum", "128,4096,axis=1"}, {AcrossThreads}},
      {"several kernels", {"conv2d_winograd_nhwc", "1,14,14,32,32", "bias,relu"}, {HasManyKernels}},
      {"clusters of blocks", {"conv2d_nhwc", "1,7,7,256,64,3,3,1,1", "bias,relu"}, {HasClusters}},
      {"argmax", {"argmax", "32,777,axis=1"}},
      {"pooling", {"max_pool2d_nhwc", "1,28,28,32,3,3,2,1"}},
      {"odd sizes, matmul", {"matmul", "127,255,63", "relu"}},
      {"odd sizes, convolution", {"conv2d_nhwc", "3,7,13,17,5,3,3,1,1"}},
      {"float16", {"matmul", "128,128,128", "", "float16"}, {HalfVectors}},
      {"bfloat16", {"dense", "64,128,96", "relu", "bfloat16"}, {IsOfCores}},
      {"int8", {"dense", "64,128,256", "", "int8"}, {ByteVectors}},
      {"float8_e4m3fn", {"dense", "64,128,256", "", "float8_e4m3fn"}},
      {"float8_e5m2", {"matmul", "64,96,64", "relu", "float8_e5m2"}},
      {"float64", {"matmul", "64,64,64", "", "float64"}},
  };
  for (const instructions::MatrixUnit& unit : instructions::MatrixUnits()) {
    // No operator sums products of unsigned bytes in int32.
    if (target.GpuArch() < unit.first_arch || unit.factor == ir::kUInt8) continue;
    AddWarpPrograms(unit, programs);
    if (target.GpuArch() == ir::kWarpgroupArch) AddWarpgroupPrograms(unit, programs);
  }
  return programs;
}

target::Target TargetFor(const SelfTestProgram& program, target::Target target) {
  if (target.kind != &target::kCuda) return target;
  if (program.shared_bytes > 0)
    target.options["max_shared_memory_per_block"] = fmt::format("{}", program.shared_bytes);
  if (program.rounds_to_tf32) target.options[std::string(target::kMath)] = target::kTf32;
  return target;
}

StatusOr<std::string> StepsOf(const SelfTestProgram& program, const dag::DagPtr& dag,
                              const target::Target& target, uint64_t seed) {
  if (target.kind == &target::kCuda && program.wanted.is_wanted)
    return SampleGpuSteps(dag, target, seed, program.wanted);
  KILN_ASSIGN_OR_RETURN(const auto samples, SampleSteps(dag, target, seed, 1));
  if (samples.empty()) return NotFound("random sampling finds no candidate");
  return samples[0];
}

}  // namespace kiln::client
