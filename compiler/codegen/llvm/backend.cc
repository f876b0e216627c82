#include "compiler/codegen/llvm/backend.h"

#include "base/clock.h"
#include "compiler/codegen/llvm/llvm.h"

namespace kiln::codegen {
namespace {

constexpr CodeForm kForms[] = {{"llvm", "LLVM IR"}, {"asm", "assembly"}};

class Llvm final : public Backend {
 public:
  const target::TargetKind& kind() const override { return target::kLlvm; }

  StatusOr<std::string> Compiler() const override { return std::string("LLVM"); }

  StatusOr<target::Target> Resolve(const target::Target& target) const override {
    return ResolveCpu(target);
  }

  StatusOr<std::vector<std::string>> FeaturesUsed(
      const target::Target& target, std::span<const std::string_view> features) const override {
    return CpuFeaturesUsed(target, features);
  }

  StatusOr<Compiled> Compile(const ir::Program& program, const target::Target& target,
                             const CompileOptions& options, CompileTimes& times) const override {
    const double start_s = Clock::Real().MonotonicSeconds();
    auto compiled = CompileLlvm(program, target, {.fault = options.fault});
    times.compile_s = Clock::Real().MonotonicSeconds() - start_s;
    return compiled;
  }

  StatusOr<GeneratedSource> Generate(const ir::Program& program, const target::Target& target,
                                     const CompileOptions& options,
                                     CompileTimes& times) const override {
    const double start_s = Clock::Real().MonotonicSeconds();
    GeneratedSource source;
    KILN_ASSIGN_OR_RETURN(
        source.text, PrintLlvmIr(program, target, {.fault = options.fault, .optimize = false}));
    source.interface = DescribeCpuProgram(program);
    times.generate_s = Clock::Real().MonotonicSeconds() - start_s;
    return source;
  }

  std::span<const CodeForm> forms() const override { return kForms; }

  StatusOr<std::string> Show(std::string_view form, const ir::Program& program,
                             const target::Target& target,
                             const ir::PassInstruments*) const override {
    if (form == "asm") return PrintAssembly(program, target);
    return PrintLlvmIr(program, target);
  }
};

}  // namespace

const Backend& LlvmBackend() {
  static const Llvm backend;
  return backend;
}

}  // namespace kiln::codegen
