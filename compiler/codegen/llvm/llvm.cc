// The stages: check, generate, optimize, object code, link.
#include "compiler/codegen/llvm/llvm.h"

#include <llvm/IR/AssemblyAnnotationWriter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/FormattedStream.h>
#include <llvm/Support/raw_ostream.h>

#include <memory>
#include <utility>

#include "base/process/cpu_time.h"
#include "compiler/codegen/llvm/check.h"
#include "compiler/codegen/llvm/emit.h"
#include "compiler/codegen/llvm/link.h"
#include "compiler/codegen/llvm/machine.h"
#include "compiler/codegen/llvm/optimize.h"
#include "proto/cpu_abi.h"

namespace kiln::codegen {
namespace {
// CPU time of this thread, which excludes other work on the machine.
double NowMs() { return ThreadCpuSeconds() * 1e3; }

// A module with the machine that it is for. The context must outlive the module.
struct Generated {
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
  llvm::TargetMachine* machine = nullptr;
  CpuFeatures features;
};

// LLVM passes small arrays as wide vectors, and regards those as legal from then on.
void KeepVectorWidth(const CpuFeatures& features, llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (!function.isDeclaration())
      function.addFnAttr("min-legal-vector-width", std::to_string(8 * features.vector_bytes));
  }
}

StatusOr<Generated> Generate(const ir::Program& program, const target::Target& target,
                             const LlvmOptions& options) {
  LlvmTimes unused;
  LlvmTimes& times = options.times != nullptr ? *options.times : unused;
  double start = NowMs();
  const auto lap = [&start] {
    const double previous = std::exchange(start, NowMs());
    return start - previous;
  };

  KILN_RETURN_IF_ERROR(ir::Verify(program));
  KILN_RETURN_IF_ERROR(CheckCpuProgram(program));
  Generated generated;
  KILN_ASSIGN_OR_RETURN(const target::Target resolved, ResolveCpu(target));
  KILN_ASSIGN_OR_RETURN(generated.machine, FindMachine(resolved));
  generated.module = std::make_unique<llvm::Module>("kiln", *generated.context);
  generated.features = FeaturesOf(*generated.machine, resolved);
  Emitter(program, generated.features, *generated.module).EmitProgram(options.fault);
  PrepareModule(*generated.machine, generated.features, *generated.module);
  std::string errors;
  llvm::raw_string_ostream stream(errors);
  KILN_CHECK(!llvm::verifyModule(*generated.module, &stream), "generated LLVM IR is broken: {}",
             errors);
  times.generate_ms = lap();

  if (options.optimize) OptimizeModule(*generated.machine, *generated.module);
  KeepVectorWidth(generated.features, *generated.module);
  times.optimize_ms = lap();
  return generated;
}

// Returns the object file of an empty module, for the linker's stub.
StatusOr<std::string> EmptyObject(llvm::TargetMachine& machine, const CpuFeatures& features) {
  llvm::LLVMContext context;
  llvm::Module module("empty", context);
  PrepareModule(machine, features, module);
  return EmitCode(machine, module, llvm::CodeGenFileType::ObjectFile);
}

// Prints above each store to which stage of the schedule it belongs.
class StageComments : public llvm::AssemblyAnnotationWriter {
 public:
  void emitInstructionAnnot(const llvm::Instruction* instruction,
                            llvm::formatted_raw_ostream& out) override {
    const llvm::MDNode* stage = instruction->getMetadata("kiln.stage");
    if (stage == nullptr) return;
    out << "  ; stage " << llvm::cast<llvm::MDString>(stage->getOperand(0))->getString() << '\n';
  }
};

std::string BufferComments(const ir::Program& program) {
  std::string text;
  for (const ir::Buffer& buffer : program.buffers) {
    text += fmt::format("; {:9} {} {}[{}]\n", ir::ScopeName(buffer.scope),
                        ir::TypeName(buffer.type), buffer.name, fmt::join(buffer.shape, ", "));
  }
  return text + '\n';
}
}  // namespace

Compiled DescribeCpuProgram(const ir::Program& program) {
  Compiled compiled;
  Launch launch;
  launch.symbol = KILN_CPU_ENTRY;
  for (int slot = 0; slot < program.num_args(); ++slot) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(slot)];
    compiled.args.push_back(ArgumentOf(buffer));
    launch.args.push_back(static_cast<uint32_t>(slot));
  }
  compiled.launches.push_back(std::move(launch));
  return compiled;
}

StatusOr<std::string> PrintLlvmIr(const ir::Program& program, const target::Target& target,
                                  const LlvmOptions& options) {
  KILN_ASSIGN_OR_RETURN(const Generated generated, Generate(program, target, options));
  std::string text = BufferComments(program);
  llvm::raw_string_ostream stream(text);
  StageComments comments;
  generated.module->print(stream, &comments);
  return text;
}

StatusOr<std::string> PrintAssembly(const ir::Program& program, const target::Target& target,
                                    const LlvmOptions& options) {
  KILN_ASSIGN_OR_RETURN(const Generated generated, Generate(program, target, options));
  return EmitCode(*generated.machine, *generated.module, llvm::CodeGenFileType::AssemblyFile);
}

StatusOr<Compiled> CompileLlvm(const ir::Program& program, const target::Target& target,
                               const LlvmOptions& options) {
  KILN_ASSIGN_OR_RETURN(const Generated generated, Generate(program, target, options));
  double start = NowMs();
  KILN_ASSIGN_OR_RETURN(const std::string object, EmitCode(*generated.machine, *generated.module,
                                                           llvm::CodeGenFileType::ObjectFile));
  const double emitted = NowMs();
  KILN_ASSIGN_OR_RETURN(const std::string empty,
                        EmptyObject(*generated.machine, generated.features));
  Compiled compiled = DescribeCpuProgram(program);
  KILN_ASSIGN_OR_RETURN(compiled.binary, LinkSharedObject(object, empty));
  if (options.times != nullptr) {
    options.times->codegen_ms = emitted - start;
    options.times->link_ms = NowMs() - emitted;
  }
  return compiled;
}

}  // namespace kiln::codegen
