#include "compiler/codegen/cuda/compile.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/target/registers.h"

namespace kiln::codegen {
namespace {

// Text up to the next line end that stands behind `key`, or before it.
int64_t NumberBehind(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == text.npos) return 0;
  int64_t value = 0;
  std::from_chars(text.data() + at + key.size(), text.data() + text.size(), value);
  return value;
}

int64_t NumberBefore(std::string_view text, std::string_view key) {
  const size_t end = text.find(key);
  if (end == text.npos) return 0;
  size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  int64_t value = 0;
  std::from_chars(text.data() + begin, text.data() + end, value);
  return value;
}

// Takes the lines of `ptxas -v` out of the log.
//   ptxas info    : Compiling entry function 'k' for 'sm_90'
//   ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 14 registers, used 0 barriers
void ParseReport(std::string_view log, Cubin& cubin) {
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    const bool is_report = line.starts_with("ptxas info") || line.starts_with("ptxas   ") ||
                           line.find("bytes stack frame") != line.npos;
    if (const size_t at = line.find("entry function '"); at != line.npos) {
      const std::string_view name = line.substr(at + 16);
      cubin.kernels.push_back({.name = std::string(name.substr(0, name.find('\'')))});
    } else if (!cubin.kernels.empty() && is_report) {
      KernelResources& kernel = cubin.kernels.back();
      if (line.find("bytes stack frame") != line.npos) {
        kernel.stack_bytes = NumberBefore(line, " bytes stack frame");
        kernel.spill_store_bytes = NumberBefore(line, " bytes spill stores");
        kernel.spill_load_bytes = NumberBefore(line, " bytes spill loads");
      }
      if (line.find("Used ") != line.npos) {
        kernel.registers = static_cast<int>(NumberBehind(line, "Used "));
        kernel.static_shared_bytes = NumberBefore(line, " bytes smem");
      }
    }
    if (!is_report && line.find_first_not_of(std::string_view(" \0", 2)) != line.npos) {
      cubin.log += line;
      cubin.log += '\n';
    }
  }
}

// "sm_90a" -> 90.
StatusOr<int> ArchNumber(std::string_view arch) {
  int number = 0;
  const bool has_prefix = arch.starts_with("sm_");
  const std::string_view digits = has_prefix ? arch.substr(3) : arch;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const std::string_view rest(end, static_cast<size_t>(digits.data() + digits.size() - end));
  if (!has_prefix || error != std::errc() || number < 70 || number > 999 ||
      !(rest.empty() || rest == "a" || rest == "f")) {
    return InvalidArgument("GPU architecture '{}', expected one like sm_90 or sm_90a, from sm_70",
                           arch);
  }
  return number;
}

StatusOr<std::vector<std::string>> Options(const Nvrtc& nvrtc, const std::string& source,
                                           std::string_view arch, const CudaOptions& options) {
  KILN_ASSIGN_OR_RETURN(const int number, ArchNumber(arch));
  const std::vector<int>& archs = nvrtc.info().archs;
  if (std::ranges::find(archs, number) == archs.end()) {
    return InvalidArgument("NVRTC {}.{} does not compile for {}, it knows sm_{}",
                           nvrtc.info().major, nvrtc.info().minor, arch, fmt::join(archs, ", sm_"));
  }
  std::vector<std::string> result = {fmt::format("--gpu-architecture={}", arch), "--std=c++17",
                                     "--fmad=true"};
  if (options.fast_math) result.emplace_back("--use_fast_math");
  if (KeepsCubins(nvrtc.info())) result.emplace_back("--no-cache");
  constexpr std::pair kFirstWithRegisterLimit(12, 4);
  if (source.find("__maxnreg__") != source.npos &&
      std::pair(nvrtc.info().major, nvrtc.info().minor) < kFirstWithRegisterLimit) {
    return FailedPrecondition(
        "kernels whose threads have a limit of registers (-registers_per_block) need NVRTC 12.4 or "
        "newer, found {}.{}: leave the option out or set KILN_NVRTC",
        nvrtc.info().major, nvrtc.info().minor);
  }
  if (source.find("#include") != source.npos) {
    const std::string include = nvrtc.FindInclude("cuda_fp16.h");
    if (include.empty()) {
      return FailedPrecondition(
          "code that includes headers, as kernels of yours may, needs those of a CUDA toolkit, "
          "which are not beside {}: set CUDA_HOME to a toolkit",
          nvrtc.info().path);
    }
    result.push_back("--include-path=" + include);
  }
  return result;
}
}  // namespace

bool KeepsCubins(const NvrtcInfo& nvrtc) {
  constexpr std::pair kFirst(12, 9);
  return std::pair(nvrtc.major, nvrtc.minor) >= kFirst;
}

StatusOr<NvrtcInfo> FindNvrtc() {
  KILN_ASSIGN_OR_RETURN(const Nvrtc* const nvrtc, Nvrtc::Get());
  return nvrtc->info();
}

std::vector<std::string> FoldersOf(const NvrtcInfo& nvrtc) {
  std::error_code error;
  const std::filesystem::path path(nvrtc.path);
  std::vector<std::string> folders = {path.parent_path(),
                                      std::filesystem::weakly_canonical(path, error).parent_path()};
  const auto loaded = Nvrtc::Get();
  const std::string include = loaded.ok() ? (*loaded)->FindInclude("cuda_fp16.h") : "";
  if (!include.empty()) folders.push_back(include);
  return folders;
}

StatusOr<Cubin> CompileCubin(const std::string& source, std::string_view arch,
                             const CudaOptions& options, std::span<const std::string> more) {
  KILN_ASSIGN_OR_RETURN(const Nvrtc* const nvrtc, Nvrtc::Get());
  KILN_ASSIGN_OR_RETURN(std::vector<std::string> flags, Options(*nvrtc, source, arch, options));
  flags.insert(flags.end(), more.begin(), more.end());
  flags.emplace_back("--ptxas-options=-v");
  Cubin cubin;
  cubin.arch = arch;
  std::string log;
  KILN_ASSIGN_OR_RETURN(cubin.binary, nvrtc->Compile(source, flags, Nvrtc::Output::kCubin, &log));
  ParseReport(log, cubin);
  return cubin;
}

StatusOr<Cubin> CompileSource(const CudaSource& source, std::string_view arch,
                              const CudaOptions& options, std::span<const std::string> more) {
  KILN_ASSIGN_OR_RETURN(const Nvrtc* const nvrtc, Nvrtc::Get());
  std::vector<std::string> flags(more.begin(), more.end());
  if (nvrtc->KnowsMinimal()) flags.emplace_back("--minimal");
  // Quotients are named where they are worth it in one of the places of a variable.
  flags.emplace_back("--diag-suppress=177");
  return CompileCubin(source.text, ArchFor(source, arch), options, flags);
}

StatusOr<std::string> CompilePtx(const std::string& source, std::string_view arch,
                                 const CudaOptions& options) {
  KILN_ASSIGN_OR_RETURN(const Nvrtc* const nvrtc, Nvrtc::Get());
  KILN_ASSIGN_OR_RETURN(const std::vector<std::string> flags,
                        Options(*nvrtc, source, arch, options));
  std::string log;
  return nvrtc->Compile(source, flags, Nvrtc::Output::kPtx, &log);
}

namespace {
const KernelResources* Find(const Cubin& cubin, const std::string& kernel) {
  const auto found = std::ranges::find(cubin.kernels, kernel, &KernelResources::name);
  return found == cubin.kernels.end() ? nullptr : &*found;
}
}  // namespace

std::string ResourceComment(const CudaSource& source, const Cubin& cubin) {
  std::string text = fmt::format("// For {}, per thread:\n", cubin.arch);
  for (const CudaKernel& kernel : source.kernels) {
    const KernelResources* const resources = Find(cubin, kernel.name);
    if (resources == nullptr) continue;
    text += fmt::format(
        "//   {}: {} registers, {} bytes spilled, {} bytes of stack; {} bytes of shared memory per "
        "block{}\n",
        kernel.name, resources->registers,
        resources->spill_store_bytes + resources->spill_load_bytes, resources->stack_bytes,
        kernel.static_shared_bytes + kernel.dynamic_shared_bytes,
        kernel.cluster > 1 ? fmt::format(", clusters of {} blocks", kernel.cluster) : "");
  }
  return text;
}

StatusOr<CudaGenerated> GenerateForTarget(const ir::Program& program, const target::Target& target,
                                          const CudaOptions& options) {
  if (target.kind != &target::kCuda || target.Option("arch").empty()) {
    return InvalidArgument("target '{}' names no GPU architecture, expected cuda -arch=sm_90",
                           target::PrintTarget(target));
  }
  KILN_RETURN_IF_ERROR(CheckCudaTarget(program, target));
  CudaGenerated result;
  CudaOptions of_target = options;
  of_target.arch = target.GpuArch();
  of_target.registers_per_block = target::RegistersPerBlock(target);
  KILN_ASSIGN_OR_RETURN(result.source, GenerateCuda(program, of_target));
  Compiled& interface = result.interface;
  interface.is_stateful = result.source.is_stateful;
  for (int i = 0; i < program.num_args(); ++i)
    interface.args.push_back(ArgumentOf(program.buffers[static_cast<size_t>(i)]));
  for (const CudaKernel& kernel : result.source.kernels) {
    interface.launches.push_back(
        {.symbol = kernel.name,
         .grid = {kernel.grid.begin(), kernel.grid.end()},
         .block = {kernel.block.begin(), kernel.block.end()},
         .cluster = static_cast<uint32_t>(kernel.cluster),
         .dynamic_shared_bytes = static_cast<uint32_t>(kernel.dynamic_shared_bytes),
         .args = {kernel.args.begin(), kernel.args.end()},
         .tensor_maps = kernel.tensor_maps,
         .waits_for_previous = options.waits_for_previous,
         .shared_bytes =
             static_cast<uint32_t>(kernel.static_shared_bytes + kernel.dynamic_shared_bytes)});
  }
  return result;
}

StatusOr<CudaCompiled> CompileCudaWithReport(const ir::Program& program,
                                             const target::Target& target,
                                             const CudaOptions& options) {
  Clock& clock = Clock::Real();
  const double start_s = clock.MonotonicSeconds();
  KILN_ASSIGN_OR_RETURN(CudaGenerated generated, GenerateForTarget(program, target, options));
  const double generated_s = clock.MonotonicSeconds();
  CudaCompiled result;
  result.source = std::move(generated.source);
  KILN_ASSIGN_OR_RETURN(result.cubin, CompileSource(result.source, target.Option("arch"), options));
  result.generate_s = generated_s - start_s;
  result.compile_s = clock.MonotonicSeconds() - generated_s;
  Compiled& compiled = result.compiled;
  compiled = std::move(generated.interface);
  compiled.binary = std::move(result.cubin.binary);
  for (Launch& launch : compiled.launches) {
    const KernelResources* const resources = Find(result.cubin, launch.symbol);
    if (resources == nullptr) continue;
    launch.registers = static_cast<uint32_t>(resources->registers);
    launch.stack_bytes = static_cast<uint32_t>(resources->stack_bytes);
    launch.spilled_bytes =
        static_cast<uint32_t>(resources->spill_store_bytes + resources->spill_load_bytes);
  }
  return result;
}

StatusOr<Compiled> CompileCuda(const ir::Program& program, const target::Target& target,
                               const CudaOptions& options) {
  KILN_ASSIGN_OR_RETURN(CudaCompiled result, CompileCudaWithReport(program, target, options));
  return std::move(result.compiled);
}

}  // namespace kiln::codegen
