#include "runner/cuda_program.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace kiln::runner {
namespace {

constexpr uint16_t kElfMachineCuda = 190;
constexpr unsigned kMaxGrid[3] = {0x7fffffff, 65535, 65535};
constexpr unsigned kMaxBlock[3] = {1024, 1024, 64};
// More needs the function's consent.
constexpr unsigned kPlainSharedBytes = 48 << 10;

Status ReadExtents(std::string_view what, const google::protobuf::RepeatedField<uint32_t>& from,
                   const unsigned (&most)[3], unsigned (&into)[3]) {
  if (from.empty() || from.size() > 3) {
    return InvalidArgument("{} of {} extents, expected x, y, z", what, from.size());
  }
  for (int axis = 0; axis < from.size(); ++axis) {
    if (from[axis] < 1 || from[axis] > most[axis]) {
      return InvalidArgument("{} extent {} is {}, expected 1 to {}", what, "xyz"[axis], from[axis],
                             most[axis]);
    }
    into[axis] = from[axis];
  }
  return OkStatus();
}

Status CheckParameters(const CudaDriver& driver, CuFunction function, size_t expected) {
  if (driver.FuncGetParamInfo == nullptr) return OkStatus();
  size_t count = 0;
  size_t offset = 0;
  size_t bytes = 0;
  while (driver.FuncGetParamInfo(function, count, &offset, &bytes) == 0) {
    if (bytes != sizeof(CuPointer)) {
      return InvalidArgument("its parameter {} has {} bytes, expected pointers only", count, bytes);
    }
    ++count;
  }
  if (count == expected) return OkStatus();
  return InvalidArgument("it takes {} parameters, the plan gives {}", count, expected);
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
  const uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (threads > static_cast<uint64_t>(max_threads)) {
    return InvalidArgument(
        "{} threads per block, its registers and launch bounds allow {} on this GPU", threads,
        max_threads);
  }
  const int64_t shared_bytes = int64_t{static_shared_bytes} + launch.dynamic_shared_bytes;
  if (shared_bytes > gpu.max_shared_bytes_per_block_optin) {
    return InvalidArgument("{} bytes of shared memory per block, this GPU has {}", shared_bytes,
                           gpu.max_shared_bytes_per_block_optin);
  }
  if (shared_bytes <= kPlainSharedBytes) return OkStatus();
  return driver.Check(
      driver.FuncSetAttribute(launch.function, kCuFunctionMaxDynamicSharedBytes,
                              static_cast<int>(launch.dynamic_shared_bytes)),
      fmt::format("get {} bytes of dynamic shared memory", launch.dynamic_shared_bytes));
}

// Of kernels whose blocks form clusters: that they are those of the plan, and that one fits the
// GPU.
Status CheckCluster(const CudaDriver& driver, const CudaGpu& gpu, const CudaLaunch& launch,
                    unsigned cluster) {
  int width = 0;
  // Drivers that know no clusters know no such attribute.
  if (driver.FuncGetAttribute(&width, kCuFunctionRequiredClusterWidth, launch.function) != 0)
    width = 0;
  // None is 0 or 1.
  if (std::max(width, 1) != static_cast<int>(std::max(cluster, 1u))) {
    return InvalidArgument("it was compiled for clusters of {} blocks, the plan says {}",
                           std::max(width, 1), std::max(cluster, 1u));
  }
  if (cluster <= 1) return OkStatus();
  if (launch.grid[0] % cluster != 0) {
    return InvalidArgument("{} blocks along x are no clusters of {}", launch.grid[0], cluster);
  }
  if (driver.OccupancyMaxActiveClusters == nullptr) return OkStatus();
  const CuLaunchConfig config{.grid = {launch.grid[0], launch.grid[1], launch.grid[2]},
                              .block = {launch.block[0], launch.block[1], launch.block[2]},
                              .shared_bytes = launch.dynamic_shared_bytes,
                              .stream = nullptr,
                              .attributes = nullptr,
                              .attribute_count = 0};
  int active = 0;
  // A driver that cannot tell leaves it to the launch.
  if (driver.OccupancyMaxActiveClusters(&active, launch.function, &config) != 0 || active > 0)
    return OkStatus();
  return InvalidArgument(
      "no cluster of {} blocks with {} threads and {} bytes of dynamic shared memory each fits {} "
      "({})",
      cluster, launch.block[0] * launch.block[1] * launch.block[2], launch.dynamic_shared_bytes,
      gpu.name, ArchOf(gpu));
}

StatusOr<CudaLaunch> PrepareLaunch(const CudaDriver& driver, const CudaGpu& gpu, CuModule module,
                                   const v1::KernelLaunch& from, int plan_args) {
  CudaLaunch launch;
  KILN_RETURN_IF_ERROR(ReadExtents("grid", from.grid(), kMaxGrid, launch.grid));
  KILN_RETURN_IF_ERROR(ReadExtents("block", from.block(), kMaxBlock, launch.block));
  for (uint32_t index : from.args()) {
    if (index >= static_cast<uint32_t>(plan_args)) {
      return InvalidArgument("takes argument {} of a plan with {}", index, plan_args);
    }
    launch.args.push_back(index);
  }
  launch.dynamic_shared_bytes = from.dynamic_shared_bytes();
  const CuResult found = driver.ModuleGetFunction(&launch.function, module, from.symbol().c_str());
  if (found == kCuNotFound) return InvalidArgument("the cubin has no such kernel");
  KILN_RETURN_IF_ERROR(driver.Check(found, "load it"));
  KILN_RETURN_IF_ERROR(CheckParameters(driver, launch.function, launch.args.size()));
  KILN_RETURN_IF_ERROR(CheckResources(driver, gpu, launch));
  KILN_RETURN_IF_ERROR(CheckCluster(driver, gpu, launch, from.cluster()));
  return launch;
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

StatusOr<std::unique_ptr<CudaProgram>> CudaProgram::Load(const CudaDriver& driver,
                                                         const CudaGpu& gpu,
                                                         const v1::Artifact& artifact) {
  if (artifact.device() != "cuda") {
    return InvalidArgument("the artifact is for device '{}', expected one for cuda",
                           artifact.device());
  }
  KILN_RETURN_IF_ERROR(CheckCubin(artifact.binary()));
  if (artifact.plan().launches().empty()) return InvalidArgument("the plan launches nothing");
  std::unique_ptr<CudaProgram> program(new CudaProgram(driver));
  KILN_RETURN_IF_ERROR(
      driver.Check(driver.ModuleLoadData(&program->module_, artifact.binary().data()),
                   fmt::format("load the cubin on {} ({})", gpu.name, ArchOf(gpu))));
  for (const v1::KernelLaunch& from : artifact.plan().launches()) {
    auto launch = PrepareLaunch(driver, gpu, program->module_, from, artifact.plan().args_size());
    if (!launch.ok()) {
      return Annotate(launch.status(), fmt::format("kernel '{}'", from.symbol()));
    }
    program->launches_.push_back(*std::move(launch));
    program->symbols_.push_back(from.symbol());
  }
  return program;
}

CudaProgram::~CudaProgram() {
  // Fails when the context is lost; then nothing is left to unload.
  if (module_ != nullptr) driver_.ModuleUnload(module_);
}

Status CudaProgram::Launch(CuStream stream, std::span<CuPointer> args) const {
  std::vector<void*> parameters;
  for (size_t i = 0; i < launches_.size(); ++i) {
    const CudaLaunch& launch = launches_[i];
    parameters.clear();
    for (uint32_t index : launch.args) parameters.push_back(&args[index]);
    const CuResult result =
        driver_.LaunchKernel(launch.function, launch.grid[0], launch.grid[1], launch.grid[2],
                             launch.block[0], launch.block[1], launch.block[2],
                             launch.dynamic_shared_bytes, stream, parameters.data(), nullptr);
    if (result != 0) {
      return driver_.Check(result, fmt::format("launch kernel '{}'", symbols_[i]));
    }
  }
  return OkStatus();
}

}  // namespace kiln::runner
