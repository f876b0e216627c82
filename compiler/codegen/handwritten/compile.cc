#include "compiler/codegen/handwritten/compile.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/process/file_access.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/handwritten/c_compiler.h"
#include "compiler/codegen/handwritten/compiler_confinement.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"
#include "proto/cpu_abi.h"

namespace kiln::codegen {
namespace {

using handwritten::BoundArgument;
using handwritten::Language;
using handwritten::Specialization;

// Returns the interface of the program: inputs and outputs, like those of the unscheduled program.
StatusOr<Compiled> InterfaceOf(const dag::DagPtr& dag, const target::Target& target) {
  KILN_ASSIGN_OR_RETURN(const ir::Program program,
                        lower::Lower(schedule::State(dag), {.gpu = target.is_gpu()}));
  Compiled interface;
  for (int i = 0; i < program.num_args(); ++i) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(i)];
    if (buffer.scope == ir::Scope::kInput || buffer.scope == ir::Scope::kOutput)
      interface.args.push_back(ArgumentOf(buffer));
  }
  KILN_CHECK(interface.args.size() == dag->arguments().size(), "{} {}", interface.args.size(),
             dag->arguments().size());
  return interface;
}

// ---- CUDA -----------------------------------------------------------------------------------

// Returns "matmul" for "matmul(float const*, float*)", and "f<float, 16>" for "void f<float,
// 16>(float*)".
std::string_view FunctionOf(std::string_view demangled) {
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < demangled.size(); ++i) {
    const char c = demangled[i];
    if (c == '<') ++depth;
    if (c == '>') --depth;
    if (c == '(' && depth == 0) return demangled.substr(begin, i - begin);
    if (c == ' ' && depth == 0) begin = i + 1;
  }
  return demangled.substr(begin);
}

bool IsCalled(const std::string& symbol, std::string_view function) {
  if (symbol == function) return true;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || demangled == nullptr) return false;
  const std::string_view name = FunctionOf(demangled.get());
  return name == function || name.substr(0, name.find('<')) == function;
}

StatusOr<const KernelResources*> FindKernel(const Cubin& cubin, const std::string& function) {
  std::vector<const KernelResources*> found;
  std::vector<std::string_view> names;
  for (const KernelResources& kernel : cubin.kernels) {
    names.push_back(kernel.name);
    if (IsCalled(kernel.name, function)) found.push_back(&kernel);
  }
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    return InvalidArgument("the source has no __global__ function {}{}{}", function,
                           names.empty() ? "" : ", it has ", fmt::join(names, ", "));
  }
  return InvalidArgument("the source has {} kernels called {}, expected one: {}", found.size(),
                         function, fmt::join(names, ", "));
}

template <typename T>
std::string BytesOf(T value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

std::string ScalarBytes(const BoundArgument& argument) {
  if (const auto* const real = std::get_if<double>(&argument.number))
    return argument.type == ir::kFloat32 ? BytesOf(static_cast<float>(*real)) : BytesOf(*real);
  // The number is little-endian, so its first bytes are the low ones.
  return BytesOf(std::get<int64_t>(argument.number))
      .substr(0, static_cast<size_t>(argument.type.bytes()));
}

Launch LaunchOf(const Specialization& kernel) {
  Launch launch;
  for (size_t i = 0; i < 3; ++i) {
    launch.grid.push_back(static_cast<uint32_t>(kernel.grid[i]));
    launch.block.push_back(static_cast<uint32_t>(kernel.block[i]));
  }
  launch.dynamic_shared_bytes = static_cast<uint32_t>(kernel.shared_bytes);
  uint32_t position = 0;
  for (const BoundArgument& argument : kernel.arguments) {
    if (argument.tensor >= 0) {
      launch.args.push_back(static_cast<uint32_t>(argument.tensor));
    } else {
      launch.scalars.push_back({position, ScalarBytes(argument)});
    }
    ++position;
  }
  return launch;
}

// NVRTC is a library, so it compiles on a thread that may open only NVRTC's own files.
StatusOr<Cubin> CompileConfined(const Specialization& kernel, std::string_view arch) {
  KILN_ASSIGN_OR_RETURN(const NvrtcInfo nvrtc, FindNvrtc());
  StatusOr<Cubin> cubin = Internal("nothing was compiled");
  KILN_RETURN_IF_ERROR(RunRestricted(NvrtcAccess(FoldersOf(nvrtc)), [&] {
    cubin = CompileCubin(kernel.source, arch, {}, kernel.options);
  }));
  if (cubin.status().code() != StatusCode::kInvalidArgument) return cubin;
  const std::string said(Message(cubin.status()));
  return InvalidArgument("{}{}", said, WhyRefused(said));
}

StatusOr<Compiled> CompileKernel(const Specialization& kernel, Compiled interface,
                                 const target::Target& target,
                                 const target::HardwareParams& hardware) {
  KILN_ASSIGN_OR_RETURN(Cubin cubin, CompileConfined(kernel, target.Option("arch")));
  KILN_ASSIGN_OR_RETURN(const KernelResources* const resources, FindKernel(cubin, kernel.function));
  Launch launch = LaunchOf(kernel);
  launch.symbol = resources->name;
  launch.registers = static_cast<uint32_t>(resources->registers);
  launch.stack_bytes = static_cast<uint32_t>(resources->stack_bytes);
  launch.spilled_bytes =
      static_cast<uint32_t>(resources->spill_store_bytes + resources->spill_load_bytes);
  const int64_t shared_bytes = resources->static_shared_bytes + kernel.shared_bytes;
  launch.shared_bytes = static_cast<uint32_t>(shared_bytes);
  const int64_t most = hardware.max_shared_memory_per_block_bytes;
  if (most > 0 && shared_bytes > most) {
    return FailedPrecondition(
        "{} bytes of shared memory per block, {} of them dynamic; this GPU has "
        "{}",
        shared_bytes, kernel.shared_bytes, most);
  }
  interface.binary = std::move(cubin.binary);
  interface.launches.push_back(std::move(launch));
  return interface;
}

// ---- C --------------------------------------------------------------------------------------

StatusOr<Compiled> CompileC(const Specialization& kernel, Compiled interface,
                            const Backend& backend, const target::Target& target) {
  KILN_ASSIGN_OR_RETURN(const CCompiler compiler, CCompiler::Find());
  std::string march;
#if defined(__x86_64__)
  KILN_ASSIGN_OR_RETURN(const std::vector<std::string> features,
                        backend.FeaturesUsed(target, X86LevelFeatures()));
  march = X86Level(features);
#else
  (void)backend, (void)target;
#endif
  const std::string source = CSourceOf(kernel, interface);
  KILN_ASSIGN_OR_RETURN(interface.binary,
                        compiler.CompileSharedObject(source, march, kernel.options));
  Launch launch;
  launch.symbol = KILN_CPU_ENTRY;
  for (uint32_t i = 0; i < interface.args.size(); ++i) launch.args.push_back(i);
  interface.launches.push_back(std::move(launch));
  return interface;
}

}  // namespace

const target::TargetKind& KindOfLanguage(Language language) {
  return language == Language::kCuda ? target::kCuda : target::kLlvm;
}

StatusOr<Compiled> CompileHandwritten(const Specialization& kernel, const dag::DagPtr& dag,
                                      const Backend& backend, const target::Target& target,
                                      const target::HardwareParams& hardware, CompileTimes& times) {
  KILN_ASSIGN_OR_RETURN(Compiled interface, InterfaceOf(dag, target));
  if (!target.kind->runs_programs) {
    // The made-up cost is derived from this text.
    interface.binary = fmt::format("kiln null kernel\n{}", kernel.source);
    interface.launches.push_back(LaunchOf(kernel));
    interface.launches.back().symbol = kernel.function;
    return interface;
  }
  if (target.kind != &KindOfLanguage(kernel.language)) {
    return InvalidArgument("a {} kernel is for target {}, found {}",
                           handwritten::LanguageName(kernel.language),
                           KindOfLanguage(kernel.language).name, target.kind->name);
  }
  const double start_s = Clock::Real().MonotonicSeconds();
  auto compiled = kernel.language == Language::kCuda
                      ? CompileKernel(kernel, std::move(interface), target, hardware)
                      : CompileC(kernel, std::move(interface), backend, target);
  times.compile_s = Clock::Real().MonotonicSeconds() - start_s;
  return compiled;
}

}  // namespace kiln::codegen
