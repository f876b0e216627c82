#include "runtime/cuda_module.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace kiln::runtime {
namespace {

constexpr uint16_t kElfMachineCuda = 190;
constexpr unsigned kMaxGrid[3] = {0x7fffffff, 65535, 65535};
constexpr unsigned kMaxBlock[3] = {1024, 1024, 64};
// More shared memory needs the function's consent.
constexpr unsigned kPlainSharedBytes = 48 << 10;

Status CheckExtents(std::string_view what, const unsigned (&extents)[3],
                    const unsigned (&most)[3]) {
  for (int axis = 0; axis < 3; ++axis) {
    if (extents[axis] >= 1 && extents[axis] <= most[axis]) continue;
    return InvalidArgument("{} extent {} is {}, expected 1 to {}", what, "xyz"[axis], extents[axis],
                           most[axis]);
  }
  return OkStatus();
}

Status CheckParameters(const CudaDriver& driver, CuFunction function,
                       std::span<const size_t> expected) {
  if (driver.FuncGetParamInfo == nullptr) return OkStatus();
  size_t count = 0;
  size_t offset = 0;
  size_t bytes = 0;
  while (driver.FuncGetParamInfo(function, count, &offset, &bytes) == 0) {
    if (count < expected.size() && bytes != expected[count]) {
      return InvalidArgument("its parameter {} has {} bytes, the plan gives {}", count, bytes,
                             expected[count]);
    }
    ++count;
  }
  if (count == expected.size()) return OkStatus();
  return InvalidArgument("it takes {} parameters, the plan gives {}", count, expected.size());
}

Status CheckResources(const CudaDriver& driver, const CudaGpu& gpu, const CudaLaunch& launch) {
  int max_threads = 0;
  int static_shared_bytes = 0;
  KILN_RETURN_IF_ERROR(driver.Check(
      driver.FuncGetAttribute(&max_threads, kCuFunctionMaxThreadsPerBlock, launch.function),
      "read its limits"));
  KILN_RETURN_IF_ERROR(driver.Check(
      driver.FuncGetAttribute(&static_shared_bytes, kCuFunctionSharedBytes, launch.function),
      "read its shared memory"));
  const uint64_t threads =
      uint64_t{launch.shape.block[0]} * launch.shape.block[1] * launch.shape.block[2];
  if (threads > static_cast<uint64_t>(max_threads)) {
    return InvalidArgument(
        "{} threads per block, its registers and launch bounds allow {} on this GPU", threads,
        max_threads);
  }
  const int64_t shared_bytes = int64_t{static_shared_bytes} + launch.shape.dynamic_shared_bytes;
  if (shared_bytes > gpu.max_shared_bytes_per_block_optin) {
    return InvalidArgument("{} bytes of shared memory per block, this GPU has {}", shared_bytes,
                           gpu.max_shared_bytes_per_block_optin);
  }
  if (shared_bytes <= kPlainSharedBytes) return OkStatus();
  return driver.Check(
      driver.FuncSetAttribute(launch.function, kCuFunctionMaxDynamicSharedBytes,
                              static_cast<int>(launch.shape.dynamic_shared_bytes)),
      fmt::format("get {} bytes of dynamic shared memory", launch.shape.dynamic_shared_bytes));
}

CuLaunchConfig ConfigOf(const CudaLaunchShape& shape) {
  return {.grid = {shape.grid[0], shape.grid[1], shape.grid[2]},
          .block = {shape.block[0], shape.block[1], shape.block[2]},
          .shared_bytes = shape.dynamic_shared_bytes,
          .stream = nullptr,
          .attributes = nullptr,
          .attribute_count = 0};
}

CuLaunchAttribute WaitsItself() {
  CuLaunchAttribute attribute{.id = kCuLaunchProgrammaticStreamSerialization};
  attribute.value[0] = 1;
  return attribute;
}

CuLaunchAttribute Streamed(const CudaMemory& memory) {
  const CuAccessPolicyWindow window{.begin = memory.begin,
                                    .bytes = memory.bytes,
                                    .hit_ratio = 1,
                                    .hit = kCuAccessStreaming,
                                    .miss = kCuAccessStreaming};
  CuLaunchAttribute attribute{.id = kCuLaunchAccessPolicyWindow};
  static_assert(sizeof(window) <= sizeof(attribute.value));
  std::memcpy(attribute.value, &window, sizeof(window));
  return attribute;
}

// For kernels whose blocks form clusters: checks that the clusters are those of the plan, and that
// one fits the GPU.
Status CheckCluster(const CudaDriver& driver, const CudaGpu& gpu, const CudaLaunch& launch) {
  const unsigned cluster = launch.shape.cluster;
  int width = 0;
  // Drivers without clusters do not know the attribute.
  if (driver.FuncGetAttribute(&width, kCuFunctionRequiredClusterWidth, launch.function) != 0)
    width = 0;
  // Both 0 and 1 mean no clusters.
  if (std::max(width, 1) != static_cast<int>(std::max(cluster, 1u))) {
    return InvalidArgument("it was compiled for clusters of {} blocks, the plan says {}",
                           std::max(width, 1), std::max(cluster, 1u));
  }
  if (cluster <= 1) return OkStatus();
  if (launch.shape.grid[0] % cluster != 0) {
    return InvalidArgument("{} blocks along x are no clusters of {}", launch.shape.grid[0],
                           cluster);
  }
  if (driver.OccupancyMaxActiveClusters == nullptr) return OkStatus();
  const CuLaunchConfig config = ConfigOf(launch.shape);
  int active = 0;
  // If the driver cannot tell, the launch will.
  if (driver.OccupancyMaxActiveClusters(&active, launch.function, &config) != 0 || active > 0)
    return OkStatus();
  return InvalidArgument(
      "no cluster of {} blocks with {} threads and {} bytes of dynamic shared memory each fits {} "
      "({})",
      cluster, launch.shape.block[0] * launch.shape.block[1] * launch.shape.block[2],
      launch.shape.dynamic_shared_bytes, gpu.name, ArchOf(gpu));
}

}  // namespace

Status CheckCubin(std::string_view bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof(header) || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) {
    return InvalidArgument("the artifact is no cubin: it does not begin like an ELF file");
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kElfMachineCuda) {
    return InvalidArgument("the artifact is an ELF file for machine {}, expected a cubin ({})",
                           header.e_machine, kElfMachineCuda);
  }
  const auto fits = [&](uint64_t offset, uint64_t size) {
    return offset <= bytes.size() && size <= bytes.size() - offset;
  };
  const Status cut = InvalidArgument("the cubin is cut off after {} bytes", bytes.size());
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return cut;
  if (!fits(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr))) return cut;
  if (!fits(header.e_phoff, uint64_t{header.e_phnum} * header.e_phentsize)) return cut;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, bytes.data() + header.e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_type != SHT_NOBITS && !fits(section.sh_offset, section.sh_size)) return cut;
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<CudaModule>> CudaModule::Load(const CudaDriver& driver, const CudaGpu& gpu,
                                                       std::string_view cubin) {
  KILN_RETURN_IF_ERROR(CheckCubin(cubin));
  std::unique_ptr<CudaModule> module(new CudaModule(driver, gpu));
  KILN_RETURN_IF_ERROR(
      driver.Check(driver.ModuleLoadData(&module->module_, cubin.data()),
                   fmt::format("load the cubin on {} ({})", gpu.name, ArchOf(gpu))));
  return module;
}

CudaModule::~CudaModule() {
  // Unloading fails if the context is lost; then nothing is left to unload.
  if (module_ != nullptr) driver_.ModuleUnload(module_);
}

StatusOr<CudaLaunch> CudaModule::Prepare(const std::string& symbol, const CudaLaunchShape& shape,
                                         std::span<const size_t> parameter_bytes) const {
  const auto prepare = [&](CudaLaunch& launch) -> Status {
    KILN_RETURN_IF_ERROR(CheckExtents("grid", shape.grid, kMaxGrid));
    KILN_RETURN_IF_ERROR(CheckExtents("block", shape.block, kMaxBlock));
    const CuResult found = driver_.ModuleGetFunction(&launch.function, module_, symbol.c_str());
    if (found == kCuNotFound) return InvalidArgument("the cubin has no such kernel");
    KILN_RETURN_IF_ERROR(driver_.Check(found, "load it"));
    KILN_RETURN_IF_ERROR(CheckParameters(driver_, launch.function, parameter_bytes));
    KILN_RETURN_IF_ERROR(CheckResources(driver_, gpu_, launch));
    return CheckCluster(driver_, gpu_, launch);
  };
  CudaLaunch launch{.symbol = symbol, .shape = shape};
  KILN_RETURN_IF_ERROR(Annotate(prepare(launch), fmt::format("kernel '{}'", symbol)));
  return launch;
}

StatusOr<CuTensorMap> EncodeTensorMap(const CudaDriver& driver, const TensorMap& map,
                                      CuPointer begin) {
  KILN_RETURN_IF_ERROR(CheckTensorMap(map));
  if (driver.TensorMapEncodeTiled == nullptr) {
    return FailedPrecondition(
        "the kernel is told of arrays by tensor maps, which this driver does not know: "
        "CUDA 12.0 or later does");
  }
  const auto rank = map.extents.size();
  const std::vector<uint64_t> extents(map.extents.begin(), map.extents.end()),
      strides(map.strides.begin(), map.strides.end());
  const std::vector<unsigned> box(map.box.begin(), map.box.end()), steps(rank, 1);
  const int type = map.element_bytes == 1   ? kCuTensorMapUint8
                   : map.element_bytes == 2 ? kCuTensorMapUint16
                                            : kCuTensorMapUint32;
  const int swizzle = map.swizzle_bytes == 128  ? kCuTensorMapSwizzle128
                      : map.swizzle_bytes == 64 ? kCuTensorMapSwizzle64
                      : map.swizzle_bytes == 32 ? kCuTensorMapSwizzle32
                                                : kCuTensorMapSwizzleNone;
  CuTensorMap encoded = {};
  const CuResult result = driver.TensorMapEncodeTiled(
      &encoded, type, static_cast<unsigned>(rank), begin, extents.data(), strides.data(),
      box.data(), steps.data(), kCuTensorMapNoInterleave, swizzle, kCuTensorMapPromoteL2To256,
      kCuTensorMapZerosOutside);
  if (result == 0) return encoded;
  return driver.Check(result, fmt::format("encode the tensor map of {}", TensorMapText(map)));
}

Status Launch(const CudaDriver& driver, const CudaLaunch& launch, CuStream stream,
              void** parameters, const LaunchOptions& options) {
  CuLaunchAttribute attributes[2];
  unsigned count = 0;
  if (options.order == LaunchOrder::kWaitsItself) attributes[count++] = WaitsItself();
  if (options.streamed.bytes > 0) attributes[count++] = Streamed(options.streamed);
  CuResult result;
  if (count > 0 && driver.LaunchKernelEx != nullptr) {
    CuLaunchConfig config = ConfigOf(launch.shape);
    config.stream = stream;
    config.attributes = attributes;
    config.attribute_count = count;
    result = driver.LaunchKernelEx(&config, launch.function, parameters, nullptr);
  } else {
    const CudaLaunchShape& shape = launch.shape;
    result = driver.LaunchKernel(launch.function, shape.grid[0], shape.grid[1], shape.grid[2],
                                 shape.block[0], shape.block[1], shape.block[2],
                                 shape.dynamic_shared_bytes, stream, parameters, nullptr);
  }
  if (result == 0) return OkStatus();
  return driver.Check(result, fmt::format("launch kernel '{}'", launch.symbol));
}

}  // namespace kiln::runtime
