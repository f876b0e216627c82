#include "compiler/codegen/cuda/source.h"

#include <algorithm>
#include <optional>

#include "compiler/codegen/cuda/emit.h"
#include "compiler/codegen/cuda/names.h"
#include "compiler/codegen/cuda/narrow_floats.h"
#include "compiler/codegen/cuda/place_matrix_units.h"
#include "compiler/codegen/cuda/preamble.h"
#include "compiler/codegen/cuda/register_buffering.h"
#include "compiler/codegen/cuda/scope.h"
#include "compiler/codegen/cuda/shared.h"
#include "compiler/codegen/cuda/tile_order.h"
#include "compiler/codegen/cuda/types.h"
#include "compiler/codegen/used_slots.h"
#include "compiler/ir/scalar.h"
#include "compiler/lower/place_instructions.h"
#include "compiler/target/registers.h"

namespace kiln::codegen {
namespace {
using ir::Stmt;

constexpr int64_t kMostRegisters = 255;              // of a thread
constexpr int64_t kThreadsPerMultiprocessor = 2048;  // some have fewer: ptxas takes what fits

// Of programmatic dependent launch: what is written by what was launched before can be read behind
// it, and what that reads can be overwritten.
constexpr std::string_view kWait = "  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n";

std::string Dimensions(const std::array<int64_t, 3>& sizes) {
  return fmt::format("{} x {} x {}", sizes[0], sizes[1], sizes[2]);
}

class Generator {
 public:
  Generator(const ir::Program& program, const MatrixUnitPlan& units, const CudaOptions& options)
      : program_(program), units_(units), options_(options) {}

  StatusOr<CudaSource> Run() {
    MakeNames();
    CudaSource source;
    std::string kernels;
    for (const ir::Kernel& kernel : program_.kernels) {
      CudaKernel launch;
      KILN_ASSIGN_OR_RETURN(const std::string text, KernelText(kernel, launch));
      kernels += text + '\n';
      source.kernels.push_back(std::move(launch));
    }
    if (options_.fault == Fault::kWrongAnswer || options_.fault == Fault::kOutOfBounds) {
      AddBadStore(source, kernels);
    }
    kernels.pop_back();
    source.uses_warpgroups = !preamble_.warpgroup_units.empty();
    source.is_stateful = is_stateful_;
    source.text = PreambleText(preamble_) + kernels;
    return source;
  }

 private:
  void MakeNames() {
    for (const ir::Kernel& kernel : program_.kernels)
      kernel_names_.push_back(names_.Unique(kernel.name));
    for (const ir::Buffer& buffer : program_.buffers) {
      buffer_names_.push_back(names_.Unique(buffer.name));
      preamble_.Use(buffer.type);
    }
    std::vector<std::string> var_names;
    for (const ir::LoopVar& var : program_.vars) var_names.push_back(names_.Unique(var.name));
    scope_.emplace(program_, var_names);
  }

  StatusOr<std::string> KernelText(const ir::Kernel& kernel, CudaKernel& launch) {
    const SharedLayout shared = LayOutShared(program_, kernel);
    const bool is_dynamic = shared.bytes > kMaxStaticSharedBytes;
    launch.name = kernel_names_[static_cast<size_t>(&kernel - program_.kernels.data())];
    launch.grid = kernel.grid;
    launch.block = kernel.block;
    launch.cluster = kernel.cluster;
    launch.grid[0] *= kernel.cluster;
    (is_dynamic ? launch.dynamic_shared_bytes : launch.static_shared_bytes) = shared.bytes;
    CudaEmitter emitter(program_, kernel, units_, buffer_names_, *scope_, names_, preamble_);
    KILN_ASSIGN_OR_RETURN(const std::string body, emitter.EmitBody(shared, is_dynamic));
    launch.unrolled_cost = emitter.unrolling().cost;
    const CudaBulkCopies& bulk = emitter.bulk_copies();
    const CudaBulkVisits& visits = emitter.bulk_visits();
    launch.copying_threads = CopyingThreads(program_, kernel);
    launch.block[0] += launch.copying_threads;
    if (visits.is_used()) launch.tensor_maps = visits.maps();
    if (bulk.is_used()) {
      launch.tensor_maps = bulk.maps();
      if (bulk.has_pairs()) launch.cluster = 2;
      if (bulk.persistent_blocks() > 0) launch.grid[0] = bulk.persistent_blocks();
    }
    std::string text = bulk.is_used() ? bulk.globals() : "";
    is_stateful_ |= !text.empty();
    text += fmt::format("// {} blocks of {} threads", Dimensions(launch.grid),
                        Dimensions(launch.block));
    if (launch.cluster > 1) text += fmt::format(", in clusters of {}", launch.cluster);
    if (shared.bytes > 0)
      text +=
          fmt::format(", {} bytes of {}shared memory", shared.bytes, is_dynamic ? "dynamic " : "");
    const int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    KILN_ASSIGN_OR_RETURN(const std::string bounds,
                          Bounds(kernel, threads, visits.is_used() && visits.shares_registers()));
    const std::string cluster =
        launch.cluster > 1 ? fmt::format("__cluster_dims__({}, 1, 1) ", launch.cluster) : "";
    text += fmt::format(
        "\nextern \"C\" __global__ void {}{}\n{}(\n{}) {{\n", cluster, bounds, launch.name,
        Parameters(kernel, visits.is_used() ? visits.map_names() : bulk.map_names(), launch));
    if (options_.waits_for_previous) text += kWait;
    if (&kernel == &program_.kernels.front()) text += FaultText();
    return text + body + "}\n";
  }

  // What the compiler is told of the kernel's registers: how many threads and blocks share those of
  // a multiprocessor, or how many each thread has, which is no more than these would leave it. It
  // does not take both. Threads share registers out anew if all of them are the block's.
  StatusOr<std::string> Bounds(const ir::Kernel& kernel, int64_t threads, bool are_shared) const {
    const int64_t blocks = std::max<int64_t>(
        are_shared ? 1 : 0,
        std::min<int64_t>(kernel.hints[ir::Hint::kMinBlocks], kThreadsPerMultiprocessor / threads));
    const auto of_block = [&](int64_t registers) {
      return target::RegistersPerThread(registers, threads);
    };
    const int64_t shared = of_block(target::kUsualRegistersPerBlock / std::max<int64_t>(1, blocks));
    const int64_t wanted = of_block(options_.registers_per_block);
    if (options_.registers_per_block <= 0 || wanted >= std::min(shared, kMostRegisters)) {
      return blocks > 0 ? fmt::format("__launch_bounds__({}, {})", threads, blocks)
                        : fmt::format("__launch_bounds__({})", threads);
    }
    if (are_shared) {
      return InvalidArgument(
          "kernel '{}' shares out all registers of a multiprocessor, expected no "
          "-registers_per_block={}",
          kernel.name, options_.registers_per_block);
    }
    if (wanted < target::kMinRegistersPerThread) {
      return InvalidArgument(
          "kernel '{}' has blocks of {} threads, which have {} registers each where a block has "
          "-registers_per_block={}, expected {} or more: bind fewer threads or leave the option "
          "out",
          kernel.name, threads, wanted, options_.registers_per_block,
          target::kMinRegistersPerThread);
    }
    return fmt::format("__maxnreg__({})", wanted);
  }

  // `maps`: names of the tensor maps of bulk copies.
  std::string Parameters(const ir::Kernel& kernel, const std::vector<std::string>& maps,
                         CudaKernel& launch) {
    std::string text;
    launch.args = ArgumentsUsedBy(program_, kernel);
    for (const int32_t slot : launch.args) {
      const ir::Buffer& buffer = program_.buffers[static_cast<size_t>(slot)];
      text += fmt::format("{}    {}{}* __restrict__ {}", text.empty() ? "" : ",\n",
                          buffer.scope == ir::Scope::kInput ? "const " : "",
                          CudaTypeName(buffer.type), buffer_names_[static_cast<size_t>(slot)]);
      text += fmt::format(" /* [{}] */", fmt::join(buffer.shape, ", "));
    }
    for (const std::string& name : maps)
      text += fmt::format(",\n    const __grid_constant__ TensorMap {}", name);
    return text;
  }

  std::string FaultText() const {
    if (options_.fault == Fault::kNullStore)
      return "  *static_cast<volatile int*>(nullptr) = 0;  // fault test\n";
    if (options_.fault == Fault::kTrap) return "  __trap();  // fault test\n";
    if (options_.fault == Fault::kInfiniteLoop)
      return "  while (clock64() != 0) {  // fault test: for ever, and no compiler can tell\n  }\n";
    return "";
  }

  // One more kernel: it spoils the first element of the first output, or stores behind its end.
  void AddBadStore(CudaSource& source, std::string& kernels) {
    const auto output = std::ranges::find(program_.buffers, ir::Scope::kOutput, &ir::Buffer::scope);
    if (output == program_.buffers.end()) return;
    CudaKernel kernel;
    kernel.name = names_.Unique("bad_store");
    kernel.args = {static_cast<int32_t>(output - program_.buffers.begin())};
    const bool outside = options_.fault == Fault::kOutOfBounds;
    const std::string value =
        outside                  ? "out[0]"
        : output->type.is_bool() ? "!out[0]"
        : ir::Float8FormatOf(output->type) != nullptr  // large, of the other sign
            ? fmt::format("{}{{static_cast<unsigned char>((~out[0].bits & 0x80) | 0x78)}}",
                          CudaTypeName(output->type))
            : !NarrowFloatName(output->type).empty()
                  ? fmt::format("float_to_{0}({0}_to_float(out[0]) + 1000.0f)",
                                NarrowFloatName(output->type))
                  : "out[0] + 100";
    const int64_t index = outside ? output->num_elements() + 10 : 0;
    kernels += fmt::format(
        "// fault test\nextern \"C\" __global__ void {}({}* out) {{\n  out[{}] = {};\n}}\n\n",
        kernel.name, CudaTypeName(output->type), index, value);
    source.kernels.push_back(std::move(kernel));
  }

  const ir::Program& program_;
  const MatrixUnitPlan& units_;
  const CudaOptions& options_;
  CudaNames names_;
  CudaPreamble preamble_;
  bool is_stateful_ = false;
  std::vector<std::string> kernel_names_, buffer_names_;
  std::optional<CudaScope> scope_;
};
}  // namespace

StatusOr<CudaSource> GenerateCuda(const ir::Program& program, const CudaOptions& options) {
  KILN_RETURN_IF_ERROR(ir::Verify(program));
  if (program.kernels.empty()) return InvalidArgument("the program has no kernels");
  // As the threads work it off. New nodes live in a pool of its own: another thread may read the
  // program's.
  ir::Program arranged = program;
  arranged.pool = std::make_shared<ir::ExprPool>();
  ir::PassRunner passes(options.instruments);
  KILN_RETURN_IF_ERROR(passes.Run("sink-register-loops", arranged, SinkRegisterLoops));
  KILN_RETURN_IF_ERROR(passes.Run("double-buffer-operands", arranged, DoubleBufferOperands));
  const auto place = [&](ir::Program& of) { lower::PlaceInstructions(of, options.arch); };
  KILN_RETURN_IF_ERROR(passes.Run("place-instructions", arranged, place));
  // Last: the plan is of statements that stay.
  StatusOr<MatrixUnitPlan> units = MatrixUnitPlan();
  KILN_RETURN_IF_ERROR(passes.Run("place-matrix-units", arranged,
                                  [&](ir::Program& of) { units = PlaceMatrixUnits(of); }));
  KILN_RETURN_IF_ERROR(units.status());
  return Generator(arranged, *units, options).Run();
}

std::string ArchFor(const CudaSource& source, std::string_view arch) {
  return source.uses_warpgroups && arch == "sm_90" ? "sm_90a" : std::string(arch);
}

}  // namespace kiln::codegen
