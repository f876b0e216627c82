#include "compiler/codegen/cuda/backend.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/target/registers.h"
#include "compiler/target/warp_size.h"

namespace kiln::codegen {
namespace {

// The first GPUs on which kernels can wait for others: Hopper.
constexpr int kWaitingArch = 90;

constexpr CodeForm kForms[] = {{"cuda", "CUDA C"}};

CudaOptions OptionsOf(const CompileOptions& options, const target::Target& target) {
  return {.fault = options.fault,
          .waits_for_previous = options.waits_for_previous && target.GpuArch() >= kWaitingArch};
}

class Cuda final : public Backend {
 public:
  const target::TargetKind& kind() const override { return target::kCuda; }

  StatusOr<std::string> Compiler() const override {
    KILN_ASSIGN_OR_RETURN(const NvrtcInfo nvrtc, FindNvrtc());
    return fmt::format("NVRTC {}.{} ({})", nvrtc.major, nvrtc.minor, nvrtc.path);
  }

  Status Check(const ir::Program& program, const target::Target& target,
               const target::HardwareParams& hardware) const override {
    KILN_RETURN_IF_ERROR(target::CheckWarpSize(target));
    return CheckCudaProgram(program, hardware, target);
  }

  StatusOr<Compiled> Compile(const ir::Program& program, const target::Target& target,
                             const CompileOptions& options, CompileTimes& times) const override {
    KILN_ASSIGN_OR_RETURN(CudaCompiled result,
                          CompileCudaWithReport(program, target, OptionsOf(options, target)));
    times = {.generate_s = result.generate_s, .compile_s = result.compile_s};
    return std::move(result.compiled);
  }

  // The first line names what the text needs: instructions of warpgroups are those of sm_90a alone.
  StatusOr<GeneratedSource> Generate(const ir::Program& program, const target::Target& target,
                                     const CompileOptions& options,
                                     CompileTimes& times) const override {
    const double start_s = Clock::Real().MonotonicSeconds();
    KILN_ASSIGN_OR_RETURN(CudaGenerated generated,
                          GenerateForTarget(program, target, OptionsOf(options, target)));
    times.generate_s = Clock::Real().MonotonicSeconds() - start_s;
    const std::string arch = ArchFor(generated.source, target.Option("arch"));
    return GeneratedSource{
        .text = fmt::format("// For --gpu-architecture={}\n{}", arch, generated.source.text),
        .interface = std::move(generated.interface)};
  }

  std::span<const CodeForm> forms() const override { return kForms; }

  // With what the compiler says of it, where there is one.
  StatusOr<std::string> Show(std::string_view, const ir::Program& program,
                             const target::Target& target,
                             const ir::PassInstruments* instruments) const override {
    KILN_ASSIGN_OR_RETURN(
        const CudaSource source,
        GenerateCuda(program, {.registers_per_block = target::RegistersPerBlock(target),
                               .instruments = instruments}));
    const std::string arch = target.Option("arch");
    if (arch.empty() || !FindNvrtc().ok()) return source.text;
    // Code that does not compile is shown all the more.
    const auto cubin = CompileCubin(source.text, ArchFor(source, arch));
    if (!cubin.ok()) {
      const std::string_view message = Message(cubin.status());
      return fmt::format("// {}\n\n{}", message.substr(0, message.find('\n')), source.text);
    }
    return ResourceComment(source, *cubin) + "\n" + source.text;
  }

  Status RunPasses(const ir::Program& program,
                   const ir::PassInstruments* instruments) const override {
    return GenerateCuda(program, {.instruments = instruments}).status();
  }
};

}  // namespace

const Backend& CudaBackend() {
  static const Cuda backend;
  return backend;
}

}  // namespace kiln::codegen
