#include "client/check/selftest_programs.h"

#include "client/check/samples.h"

namespace kiln::client {
namespace {

constexpr int kSamples = 64;

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
bool HalfVectors(const CudaSource& source) { return Has(source, "half_x") || Has(source, "half2"); }
bool ByteVectors(const CudaSource& source) { return Has(source, "char_x") || Has(source, "char4"); }

}  // namespace

const std::vector<SelfTestProgram>& SelfTestPrograms() {
  static const std::vector<SelfTestProgram> programs = {
      {"tiled convolution", {"conv2d_nhwc", "1,14,14,64,32,3,3,1,1", "bias,relu"}, UsesShared},
      {"vector loads", {"matmul", "256,256,256"}, SharedVectorLoads},
      {"shared memory above 48 KiB", {"matmul", "512,512,512"}, UsesMuchShared, 96 << 10},
      {"reduction across threads", {"softmax", "64,1000"}, AcrossThreads},
      {"sum of rows", {"sum", "128,4096,axis=1"}, AcrossThreads},
      {"several kernels", {"conv2d_winograd_nhwc", "1,14,14,32,32", "bias,relu"}, HasManyKernels},
      {"clusters of blocks", {"conv2d_nhwc", "1,7,7,256,64,3,3,1,1", "bias,relu"}, HasClusters},
      {"argmax", {"argmax", "32,777,axis=1"}},
      {"pooling", {"max_pool2d_nhwc", "1,28,28,32,3,3,2,1"}},
      {"odd sizes, matmul", {"matmul", "127,255,63", "relu"}},
      {"odd sizes, convolution", {"conv2d_nhwc", "3,7,13,17,5,3,3,1,1"}},
      {"float16", {"matmul", "128,128,128", "", "float16"}, HalfVectors},
      {"bfloat16", {"dense", "64,128,96", "relu", "bfloat16"}},
      {"int8", {"dense", "64,128,256", "", "int8"}, ByteVectors},
      {"float8_e4m3fn", {"dense", "64,128,256", "", "float8_e4m3fn"}},
      {"float8_e5m2", {"matmul", "64,96,64", "relu", "float8_e5m2"}},
      {"float64", {"matmul", "64,64,64", "", "float64"}},
  };
  return programs;
}

StatusOr<std::string> StepsOf(const SelfTestProgram& program, const dag::DagPtr& dag,
                              const target::Target& target, uint64_t seed) {
  if (target.kind == &target::kCuda && program.wanted != nullptr) {
    return SampleGpuSteps(dag, target, seed, kSamples, program.wanted);
  }
  KILN_ASSIGN_OR_RETURN(const auto samples, SampleSteps(dag, target, seed, 1));
  if (samples.empty()) return NotFound("random sampling finds no candidate");
  return samples[0];
}

}  // namespace kiln::client
