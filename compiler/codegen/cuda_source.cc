#include "compiler/codegen/cuda_source.h"

#include <algorithm>

#include "compiler/codegen/cuda_emit.h"
#include "compiler/codegen/cuda_fragments.h"
#include "compiler/codegen/cuda_tile_order.h"

namespace kiln::codegen {
namespace {
using ir::Stmt;
using ir::StmtKind;

constexpr int64_t kThreadsPerMultiprocessor = 2048;  // some have fewer: ptxas takes what fits

// What a buffer or a loop may not be called.
constexpr std::string_view kReserved[] = {"alignas",
                                          "alignof",
                                          "and",
                                          "asm",
                                          "auto",
                                          "bool",
                                          "break",
                                          "case",
                                          "catch",
                                          "char",
                                          "class",
                                          "const",
                                          "constexpr",
                                          "continue",
                                          "default",
                                          "delete",
                                          "do",
                                          "double",
                                          "else",
                                          "enum",
                                          "explicit",
                                          "extern",
                                          "false",
                                          "float",
                                          "for",
                                          "friend",
                                          "goto",
                                          "if",
                                          "inline",
                                          "int",
                                          "long",
                                          "mutable",
                                          "namespace",
                                          "new",
                                          "not",
                                          "operator",
                                          "or",
                                          "private",
                                          "protected",
                                          "public",
                                          "register",
                                          "return",
                                          "short",
                                          "signed",
                                          "sizeof",
                                          "static",
                                          "struct",
                                          "switch",
                                          "template",
                                          "this",
                                          "throw",
                                          "true",
                                          "try",
                                          "typedef",
                                          "typename",
                                          "union",
                                          "unsigned",
                                          "using",
                                          "virtual",
                                          "void",
                                          "volatile",
                                          "while",
                                          "xor",
                                          "exp",
                                          "expf",
                                          "log",
                                          "logf",
                                          "sqrt",
                                          "sqrtf",
                                          "rsqrt",
                                          "rsqrtf",
                                          "tanh",
                                          "tanhf",
                                          "erf",
                                          "erff",
                                          "pow",
                                          "powf",
                                          "abs",
                                          "fabs",
                                          "fabsf",
                                          "floor",
                                          "floorf",
                                          "ceil",
                                          "ceilf",
                                          "rint",
                                          "rintf",
                                          "sin",
                                          "sinf",
                                          "cos",
                                          "cosf",
                                          "min",
                                          "max",
                                          "fminf",
                                          "fmaxf",
                                          "fmin",
                                          "fmax",
                                          "llabs",
                                          "sigmoid",
                                          "floor_div",
                                          "floor_mod",
                                          "shared_memory",
                                          "half",
                                          "half2",
                                          "int2",
                                          "int4",
                                          "float2",
                                          "float4",
                                          "double2",
                                          "double4",
                                          "longlong2",
                                          "longlong4",
                                          "dim3",
                                          "threadIdx",
                                          "blockIdx",
                                          "blockDim",
                                          "gridDim",
                                          "warpSize",
                                          "main",
                                          "copied",
                                          "copy_async",
                                          "copy_async_if",
                                          "commit_copies",
                                          "wait_for_copies",
                                          "in_block",
                                          "cluster_barrier",
                                          "leave_cluster"};

// From sm_80 on copies to shared memory that need no registers and go on beside the thread.
constexpr std::string_view kAsyncCopies = R"cuda(#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// 4, 8 or 16 bytes.
template <int kBytes>
__device__ __forceinline__ void copy_async(void* to, const void* from) {
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(from), "n"(kBytes)
                 : "memory");
  }
}
// Zeros where the condition does not hold; then nothing is read.
template <int kBytes>
__device__ __forceinline__ void copy_async_if(bool condition, void* to, const void* from) {
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = condition ? kBytes : 0;
  if (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from),
                 "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(from),
                 "n"(kBytes), "r"(bytes)
                 : "memory");
  }
}
// What this thread copied since the last time is a group.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all groups of this thread but the newest kPending.
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
#else
template <int kBytes>
struct __align__(kBytes) copied { unsigned words[kBytes / 4]; };
template <int kBytes>
__device__ __forceinline__ void copy_async(void* to, const void* from) {
  *static_cast<copied<kBytes>*>(to) = *static_cast<const copied<kBytes>*>(from);
}
template <int kBytes>
__device__ __forceinline__ void copy_async_if(bool condition, void* to, const void* from) {
  *static_cast<copied<kBytes>*>(to) =
      condition ? *static_cast<const copied<kBytes>*>(from) : copied<kBytes>();
}
__device__ __forceinline__ void commit_copies() {}
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {}
#endif

)cuda";

// From sm_90 on blocks of a cluster read each other's shared memory.
constexpr std::string_view kClusters =
    R"cuda(// What is at the same place of the shared memory of another block of the cluster.
template <typename T>
__device__ __forceinline__ const T* in_block(const T* mine, int block) {
  const T* theirs;
  asm("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(mine), "r"(block));
  return theirs;
}
// All threads of the cluster meet; what they stored in shared memory before, all see.
__device__ __forceinline__ void cluster_barrier() {
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1208
  // Does not wait for global memory.
  asm volatile("fence.release.sync_restrict::shared::cta.cluster;" ::: "memory");
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#else
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// The last one: a block may end, for none reads its shared memory any more.
__device__ __forceinline__ void leave_cluster() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

)cuda";

bool Uses(Stmt stmt, int32_t slot) {
  if (stmt->kind == StmtKind::kStore && stmt->slot == slot) return true;
  bool result = false;
  for (ir::Expr e : stmt->exprs()) {
    ir::Visit(e, [&](ir::Expr node) {
      if (node->op == ir::Op::kLoad && node->id == slot) result = true;
    });
  }
  return result || std::ranges::any_of(stmt->children(), [&](Stmt s) { return Uses(s, slot); });
}

std::string Dimensions(const std::array<int64_t, 3>& sizes) {
  return fmt::format("{} x {} x {}", sizes[0], sizes[1], sizes[2]);
}

std::string PreambleText(const CudaPreamble& preamble) {
  std::string text;
  if (preamble.half) text += "#include <cuda_fp16.h>\n";
  if (preamble.bfloat) text += "#include <cuda_bf16.h>\n";
  if (!text.empty()) text += '\n';
  for (const auto& [name, definition] : preamble.vector_types) text += definition + '\n';
  if (preamble.sigmoid) {
    text +=
        "__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }\n"
        "__device__ __forceinline__ double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }\n\n";
  }
  if (preamble.floor_div) {
    text +=
        "// Rounds towards minus infinity.\n"
        "template <typename T>\n"
        "__device__ __forceinline__ T floor_div(T a, T b) {\n"
        "  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);\n"
        "}\n\n";
  }
  if (preamble.floor_mod) {
    text +=
        "// The remainder of a division that rounds towards minus infinity.\n"
        "template <typename T>\n"
        "__device__ __forceinline__ T floor_mod(T a, T b) {\n"
        "  const T r = a % b;\n"
        "  return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n"
        "}\n\n";
  }
  if (preamble.async_copies) text += kAsyncCopies;
  if (preamble.cluster) text += kClusters;
  return text;
}

class Generator {
 public:
  Generator(const ir::Program& program, const CudaOptions& options)
      : program_(program), options_(options) {}

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
    source.needs_toolkit_headers = preamble_.half || preamble_.bfloat;
    source.text = PreambleText(preamble_) + kernels;
    return source;
  }

 private:
  void MakeNames() {
    for (const ir::Kernel& kernel : program_.kernels)
      kernel_names_.push_back(names_.Unique(kernel.name));
    for (const ir::Buffer& buffer : program_.buffers) {
      buffer_names_.push_back(names_.Unique(buffer.name));
      if (buffer.type == ir::kFloat16) preamble_.half = true;
      if (buffer.type == ir::kBFloat16) preamble_.bfloat = true;
    }
    for (const ir::LoopVar& var : program_.vars) var_names_.push_back(names_.Unique(var.name));
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
    CudaEmitter emitter(program_, kernel, buffer_names_, var_names_, names_, preamble_);
    KILN_ASSIGN_OR_RETURN(const std::string body, emitter.EmitBody(shared, is_dynamic));
    launch.unrolled_cost = emitter.unrolling().cost;
    std::string text = fmt::format("// {} blocks of {} threads", Dimensions(launch.grid),
                                   Dimensions(kernel.block));
    if (kernel.cluster > 1) text += fmt::format(", in clusters of {}", kernel.cluster);
    if (shared.bytes > 0)
      text +=
          fmt::format(", {} bytes of {}shared memory", shared.bytes, is_dynamic ? "dynamic " : "");
    const int64_t threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
    std::string bounds = std::to_string(threads);
    const int64_t blocks =
        std::min<int64_t>(kernel.hints[ir::Hint::kMinBlocks], kThreadsPerMultiprocessor / threads);
    if (blocks > 0) bounds += fmt::format(", {}", blocks);
    const std::string cluster =
        kernel.cluster > 1 ? fmt::format("__cluster_dims__({}, 1, 1) ", kernel.cluster) : "";
    text += fmt::format("\nextern \"C\" __global__ void {}__launch_bounds__({})\n{}(\n{}) {{\n",
                        cluster, bounds, launch.name, Parameters(kernel, launch));
    if (&kernel == &program_.kernels.front()) text += FaultText();
    return text + body + "}\n";
  }

  std::string Parameters(const ir::Kernel& kernel, CudaKernel& launch) {
    std::string text;
    for (int32_t slot = 0; slot < program_.num_args(); ++slot) {
      if (!Uses(kernel.body, slot)) continue;
      launch.args.push_back(slot);
      const ir::Buffer& buffer = program_.buffers[static_cast<size_t>(slot)];
      text += fmt::format("{}    {}{}* __restrict__ {}", text.empty() ? "" : ",\n",
                          buffer.scope == ir::Scope::kInput ? "const " : "",
                          CudaTypeName(buffer.type), buffer_names_[static_cast<size_t>(slot)]);
      text += fmt::format(" /* [{}] */", fmt::join(buffer.shape, ", "));
    }
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
        outside                         ? "out[0]"
        : output->type.is_bool()        ? "!out[0]"
        : output->type == ir::kFloat16  ? "__float2half_rn(__half2float(out[0]) + 1000.0f)"
        : output->type == ir::kBFloat16 ? "__float2bfloat16_rn(__bfloat162float(out[0]) + 1000.0f)"
                                        : "out[0] + 100";
    const int64_t index = outside ? output->num_elements() + 10 : 0;
    kernels += fmt::format(
        "// fault test\nextern \"C\" __global__ void {}({}* out) {{\n  out[{}] = {};\n}}\n\n",
        kernel.name, CudaTypeName(output->type), index, value);
    source.kernels.push_back(std::move(kernel));
  }

  const ir::Program& program_;
  const CudaOptions& options_;
  CudaNames names_;
  CudaPreamble preamble_;
  std::vector<std::string> kernel_names_, buffer_names_, var_names_;
};
}  // namespace

CudaNames::CudaNames() { used_.insert(std::begin(kReserved), std::end(kReserved)); }

std::string CudaNames::Unique(std::string_view name) {
  std::string id;
  for (char c : name) {
    const bool fits =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    id += fits ? c : '_';
  }
  if (id.empty() || (id[0] >= '0' && id[0] <= '9') || id[0] == '_') id = "v" + id;
  std::string unique = id;
  for (int n = 1; !used_.insert(unique).second; ++n) unique = fmt::format("{}_{}", id, n);
  return unique;
}

StatusOr<CudaSource> GenerateCuda(const ir::Program& program, const CudaOptions& options) {
  KILN_RETURN_IF_ERROR(ir::Verify(program));
  if (program.kernels.empty()) return InvalidArgument("the program has no kernels");
  // As the threads work it off. New nodes live in a pool of its own: another thread may read the
  // program's.
  ir::Program arranged = program;
  arranged.pool = std::make_shared<ir::ExprPool>();
  ir::PassRunner passes(options.instruments);
  KILN_RETURN_IF_ERROR(passes.Run("sink-register-loops", arranged, SinkRegisterLoops));
  KILN_RETURN_IF_ERROR(passes.Run("read-fragments-ahead", arranged, ReadFragmentsAhead));
  return Generator(arranged, options).Run();
}

}  // namespace kiln::codegen
