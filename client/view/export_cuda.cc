#include "client/view/export_cuda.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/units.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/input_facts.h"
#include "compiler/dag/matrix_unit_bound.h"
#include "compiler/dag/wide_sums.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "search/space/matrix_product.h"

namespace kiln::client {
namespace {

constexpr size_t kCommentColumns = 96;

// Facts about a type that main needs. The tolerances are the runner's (docs/runner.md).
struct TypeFacts {
  ir::Type type;
  // Name of the enumerator in main.
  const char* name;
  double relative, absolute;
  // For a type that C++ lacks: the part of the names of its functions, which stand above the
  // kernels.
  const char* functions = nullptr;
};
constexpr TypeFacts kTypes[] = {
    {ir::kFloat32, "kFloat", 1e-3, 1e-4},
    {ir::kFloat64, "kDouble", 1e-9, 1e-10},
    {ir::kFloat16, "kHalf", 2e-2, 1e-2, "f16"},
    {ir::kBFloat16, "kBfloat", 5e-2, 2e-2, "bf16"},
    {ir::kFloat8E4M3, "kE4m3", 0.15, 3e-2, "e4m3"},
    {ir::kFloat8E5M2, "kE5m2", 0.3, 3e-2, "e5m2"},
    {ir::kInt8, "kInt8", 0, 0},
    {ir::kInt32, "kInt32", 0, 0},
    {ir::kInt64, "kInt64", 0, 0},
    {ir::kBool, "kBool", 0, 0},
    {ir::kInt16, "kInt16", 0, 0},
    {ir::kUInt8, "kUInt8", 0, 0},
    {ir::kUInt16, "kUInt16", 0, 0},
    {ir::kUInt32, "kUInt32", 0, 0},
    {ir::kUInt64, "kUInt64", 0, 0},
};

StatusOr<TypeFacts> FactsOf(const ir::Buffer& buffer) {
  for (const TypeFacts& facts : kTypes) {
    if (facts.type == buffer.type) return facts;
  }
  return InvalidArgument("'{}' has type {}, which an exported kernel cannot fill", buffer.name,
                         ir::TypeName(buffer.type));
}

// Returns the text for the inside of a namespace. Its includes stand at the top of the file, and
// its kernels get C++ names.
std::string InNamespace(const std::string& name, const std::string& text) {
  std::string body;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    std::string line = text.substr(begin, end - begin);
    begin = end;
    if (line.starts_with("#include")) continue;
    constexpr std::string_view kExtern = "extern \"C\" __global__";
    if (line.starts_with(kExtern)) line.erase(0, kExtern.find("__global__"));
    body += line;
  }
  body.erase(0, body.find_first_not_of('\n'));
  return fmt::format("namespace {} {{\n\n{}\n}}  // namespace {}\n\n", name, body, name);
}

// Returns comment lines, broken at the width: JSON has no better place to break.
std::string Comment(const std::string& name, const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size() || at == 0; at += kCommentColumns) {
    out += fmt::format("// {:<10} {}\n", at == 0 ? name : "", text.substr(at, kCommentColumns));
  }
  return out;
}

bool HasTensorMaps(const codegen::CudaSource& source) {
  return std::ranges::any_of(source.kernels, [](const codegen::CudaKernel& kernel) {
    return !kernel.tensor_maps.empty();
  });
}

std::string Head(const ExportedKernel& kernel, std::string_view arch_flag, bool has_tensor_maps) {
  std::string text = fmt::format("// {}: a kernel tuned by Kiln.\n//\n", kernel.description);
  text += Comment("workload", kernel.workload_key);
  if (!kernel.preparation.empty()) text += Comment("prepared", kernel.preparation + ", before");
  text += Comment("target", kernel.target);
  if (!kernel.device.empty()) text += Comment("device", kernel.device);
  if (kernel.cost_s.has_value()) {
    std::string latency = FormatSeconds(*kernel.cost_s);
    if (kernel.flop_count > 0) latency += ", " + FormatFlops(kernel.flop_count / *kernel.cost_s);
    text += Comment("measured", latency);
  }
  text += Comment("steps", kernel.steps);
  std::string program = kernel.file_name;
  if (program.ends_with(".cu")) program.resize(program.size() - 3);
  text += fmt::format("//\n// nvcc {} -O3 -o {} {}\n\n", arch_flag, program, kernel.file_name);
  if (has_tensor_maps) text += "#include <cuda.h>\n";
  text += "#include <cuda_runtime.h>\n";
  text +=
      "\n#include <algorithm>\n#include <cmath>\n#include <cstdio>\n#include <cstdlib>\n"
      "#include <cstring>\n#include <vector>\n\n";
  return text;
}

// Returns a function that launches all kernels of a program on `b`, the buffers in the program's
// order.
std::string LaunchFunction(const std::string& name, const codegen::CudaSource& source) {
  std::string text = fmt::format("void launch_{}(void** b, cudaStream_t stream) {{\n", name);
  for (const codegen::CudaKernel& kernel : source.kernels) {
    std::vector<std::string> args;
    for (const int32_t slot : kernel.args) args.push_back(fmt::format("&b[{}]", slot));
    const std::string function = fmt::format("(const void*){}::{}", name, kernel.name);
    text += "  {\n";
    if (kernel.dynamic_shared_bytes > 0) {
      text += fmt::format(
          "    static const cudaError_t attribute =\n        cudaFuncSetAttribute({}, "
          "cudaFuncAttributeMaxDynamicSharedMemorySize, {});\n    check(attribute);\n",
          function, kernel.dynamic_shared_bytes);
    }
    for (size_t i = 0; i < kernel.tensor_maps.size(); ++i) {
      const TensorMap& map = kernel.tensor_maps[i];
      text += fmt::format(
          "    CUtensorMap map{} = tensor_map(b[{}], {}, {{{}}}, {{{}}}, {{{}}}, {});\n", i,
          map.arg, map.element_bytes, fmt::join(map.extents, ", "), fmt::join(map.strides, ", "),
          fmt::join(map.box, ", "), map.swizzle_bytes);
      args.push_back(fmt::format("&map{}", i));
    }
    text += fmt::format("    void* args[] = {{{}}};\n", fmt::join(args, ", "));
    text += fmt::format(
        "    check(cudaLaunchKernel({},\n        dim3({}), dim3({}), args, {}, stream));\n  }}\n",
        function, fmt::join(kernel.grid, ", "), fmt::join(kernel.block, ", "),
        kernel.dynamic_shared_bytes);
  }
  return text + "}\n\n";
}

// Returns the error bound of float32 if the target's matrix units round more than float32 does.
dag::ErrorBound BoundOf(const ExportedKernel& kernel) {
  const auto target = target::ParseTarget(kernel.target);
  if (!target.ok()) return {};
  return dag::MatrixUnitBound(*kernel.dag,
                              [&](const instructions::MatrixUnit& unit) {
                                return search::HasMatrixUnit(*target, unit);
                              })
      .value_or(dag::ErrorBound());
}

// `inputs` are those of the computation; they are the program's first arguments.
StatusOr<std::string> BufferTable(const std::string& name, const ir::Program& program,
                                  const dag::ErrorBound& bound,
                                  const std::vector<dag::InputFacts>& inputs) {
  size_t next_input = 0;
  std::string text = fmt::format("const Buffer {}[] = {{\n", name);
  for (int i = 0; i < program.num_args(); ++i) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(i)];
    KILN_ASSIGN_OR_RETURN(TypeFacts facts, FactsOf(buffer));
    if (buffer.type == ir::kFloat32) {
      facts.relative = std::max(facts.relative, bound.relative);
      facts.absolute = std::max(facts.absolute, bound.absolute);
    }
    const char* role = buffer.scope == ir::Scope::kInput    ? "kInput"
                       : buffer.scope == ir::Scope::kOutput ? "kOutput"
                                                            : "kWorkspace";
    const bool is_input = buffer.scope == ir::Scope::kInput && next_input < inputs.size();
    const dag::InputRange range =
        (is_input ? inputs[next_input++].range : std::nullopt).value_or(dag::InputRange());
    text += fmt::format("    {{\"{}\", {}, {}, {}LL, {}LL, {}, {}, {}LL, {:g}, {:g}}},  // [{}]\n",
                        buffer.name, role, facts.name, buffer.num_elements(), buffer.index_limit,
                        range.low, range.high, range.run, facts.relative, facts.absolute,
                        fmt::join(buffer.shape, ", "));
  }
  return text + "};\n\n";
}

constexpr char kDeclarations[] = R"cuda(void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
  std::exit(2);
}

enum Role { kInput, kOutput, kWorkspace };
enum Type {
  kFloat, kDouble, kHalf, kBfloat, kE4m3, kE5m2,
  kInt8, kInt32, kInt64, kBool, kInt16, kUInt8, kUInt16, kUInt32, kUInt64
};
struct Buffer {
  const char* name;
  Role role;
  Type type;
  long long elements;
  long long index_limit;        // inputs that are indices: values in [0, index_limit)
  double low, high;             // low < high: inputs with values in [low, high)
  long long run;                // above 0: low, low + 1, ..., so many of each, again from low
  double relative, absolute;    // |got - want| <= absolute * max|want| + relative * |want|
};

)cuda";

// Stands after kDeclarations if a kernel takes tensor maps.
constexpr char kTensorMaps[] =
    R"cuda(// A part of an array, for the bulk copy engine; extents in elements, strides in bytes.
CUtensorMap tensor_map(void* array, int element_bytes, std::vector<cuuint64_t> extents,
                       std::vector<cuuint64_t> strides, std::vector<cuuint32_t> box, int swizzle_bytes) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  check(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &encode, cudaEnableDefault, &found));
  if (encode == nullptr) std::fprintf(stderr, "this driver knows no tensor maps\n"), std::exit(2);
  const std::vector<cuuint32_t> steps(extents.size(), 1);
  CUtensorMap map;
  const CUresult result = ((decltype(&cuTensorMapEncodeTiled))encode)(
      &map,
      element_bytes == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
      : element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                           : CU_TENSOR_MAP_DATA_TYPE_UINT32,
      (cuuint32_t)extents.size(), array, extents.data(), strides.data(), box.data(), steps.data(),
      CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
      : swizzle_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
      : swizzle_bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                            : CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) std::fprintf(stderr, "a tensor map is refused: %d\n", result), std::exit(2);
  return map;
}

)cuda";

// SHORT_STORE and SHORT_LOAD stand for the cases of types that C lacks.
constexpr char kMain[] = R"cuda(size_t size_of(Type type) {
  const size_t sizes[] = {4, 8, 2, 2, 1, 1, 1, 4, 8, 1, 2, 1, 2, 4, 8};
  return sizes[type];
}

void store(void* to, Type type, long long i, double x) {
  switch (type) {
    case kFloat: ((float*)to)[i] = (float)x; break;
    case kDouble: ((double*)to)[i] = x; break;
    case kInt8: ((signed char*)to)[i] = (signed char)std::floor(x); break;
    case kInt32: ((int*)to)[i] = (int)std::floor(x); break;
    case kInt64: ((long long*)to)[i] = (long long)std::floor(x); break;
    case kBool: ((bool*)to)[i] = x > 0; break;
    case kInt16: ((short*)to)[i] = (short)std::floor(x); break;
    case kUInt8: ((unsigned char*)to)[i] = (unsigned char)std::floor(x); break;
    case kUInt16: ((unsigned short*)to)[i] = (unsigned short)std::floor(x); break;
    case kUInt32: ((unsigned int*)to)[i] = (unsigned int)std::floor(x); break;
    case kUInt64: ((unsigned long long*)to)[i] = (unsigned long long)std::floor(x); break;
SHORT_STORE    default: std::abort();
  }
}

double load(const void* from, Type type, long long i) {
  switch (type) {
    case kFloat: return ((const float*)from)[i];
    case kDouble: return ((const double*)from)[i];
    case kInt8: return ((const signed char*)from)[i];
    case kInt32: return ((const int*)from)[i];
    case kInt64: return (double)((const long long*)from)[i];
    case kBool: return ((const bool*)from)[i];
    case kInt16: return ((const short*)from)[i];
    case kUInt8: return ((const unsigned char*)from)[i];
    case kUInt16: return ((const unsigned short*)from)[i];
    case kUInt32: return ((const unsigned int*)from)[i];
    case kUInt64: return (double)((const unsigned long long*)from)[i];
SHORT_LOAD    default: std::abort();
  }
}

// Uniform: floats in [-1, 1), integers in [-8, 8), unsigned ones in [0, 16), or [0, index_limit),
// or [low, high), or in runs of equal values. The same each time the program runs.
void fill(std::vector<char>& bytes, const Buffer& buffer) {
  static unsigned long long state = 1;
  const bool is_float = buffer.type <= kE5m2;
  for (long long i = 0; i < buffer.elements; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const double u = (double)(state >> 11) / 9007199254740992.0;
    double x = is_float ? 2 * u - 1 : buffer.type >= kUInt8 ? 16 * u : 16 * u - 8;
    if (buffer.index_limit > 0) x = u * (double)buffer.index_limit;
    if (buffer.low < buffer.high) x = buffer.low * (1 - u) + buffer.high * u;
    if (buffer.run > 0) x = buffer.low + i / buffer.run % (long long)(buffer.high - buffer.low);
    store(bytes.data(), buffer.type, i, x);
  }
}

bool same(const std::vector<char>& got, const std::vector<char>& want, const Buffer& buffer) {
  // Of 8-bit floats the distance of the smallest ones, which two kernels may round to.
  const double least = buffer.type == kE4m3 ? 1.0 / 512 : buffer.type == kE5m2 ? 1.0 / 65536 : 0;
  double largest = 0, worst = 0;
  long long wrong = 0, first = -1;
  for (long long i = 0; i < buffer.elements; ++i) {
    const double w = std::fabs(load(want.data(), buffer.type, i));
    if (w > largest && std::isfinite(w)) largest = w;
  }
  for (long long i = 0; i < buffer.elements; ++i) {
    const double g = load(got.data(), buffer.type, i), w = load(want.data(), buffer.type, i);
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    const double error = std::fabs(g - w);
    if (error > worst) worst = error;
    if (error <= least + buffer.absolute * largest + buffer.relative * std::fabs(w)) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) {
    std::printf("%s: right, largest error %.1e of the largest value\n", buffer.name,
                largest > 0 ? worst / largest : worst);
    return true;
  }
  std::printf("%s: WRONG: %lld of %lld elements; element %lld is %g, expected %g\n", buffer.name,
              wrong, buffer.elements, first, load(got.data(), buffer.type, first),
              load(want.data(), buffer.type, first));
  return false;
}

// Memory for the buffers; inputs are those of `inputs`, all else is poisoned with NaN.
std::vector<void*> allocate(const Buffer* buffers, int count,
                            const std::vector<std::vector<char>>& inputs) {
  std::vector<void*> memory;
  size_t next_input = 0;
  for (int i = 0; i < count; ++i) {
    void* p = nullptr;
    const size_t bytes = (size_t)buffers[i].elements * size_of(buffers[i].type);
    check(cudaMalloc(&p, bytes));
    check(cudaMemset(p, 0xff, bytes));
    if (buffers[i].role == kInput) {
      check(cudaMemcpy(p, inputs[next_input++].data(), bytes, cudaMemcpyHostToDevice));
    }
    memory.push_back(p);
  }
  return memory;
}

// Microseconds of one call: median of 11 batches, each a graph of 20 calls that is launched until
// 10 ms have gone by.
double time_us(void** memory) {
  const int calls = 20, readings = 11;
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < calls; ++i) launch_tuned(memory, stream);
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  cudaEvent_t start, end;
  check(cudaEventCreate(&start));
  check(cudaEventCreate(&end));
  int launches = 1;
  std::vector<double> us;
  while ((int)us.size() < readings) {
    check(cudaEventRecord(start, stream));
    for (int i = 0; i < launches; ++i) check(cudaGraphLaunch(exec, stream));
    check(cudaEventRecord(end, stream));
    check(cudaEventSynchronize(end));
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start, end));
    if (ms < 10 && launches < (1 << 20)) {
      launches *= 2;
      continue;
    }
    us.push_back(1e3 * ms / launches / calls);
  }
  std::sort(us.begin(), us.end());
  return us[readings / 2];
}

int main() {
  const int tuned_count = (int)(sizeof(tuned_buffers) / sizeof(Buffer));
  const int reference_count = (int)(sizeof(reference_buffers) / sizeof(Buffer));
  std::vector<std::vector<char>> inputs;
  for (const Buffer& buffer : tuned_buffers) {
    if (buffer.role != kInput) continue;
    inputs.emplace_back((size_t)buffer.elements * size_of(buffer.type));
    fill(inputs.back(), buffer);
  }
  std::vector<void*> tuned_memory = allocate(tuned_buffers, tuned_count, inputs);
  std::vector<void*> reference_memory = allocate(reference_buffers, reference_count, inputs);
  launch_reference(reference_memory.data(), nullptr);
  launch_tuned(tuned_memory.data(), nullptr);
  check(cudaDeviceSynchronize());
  bool right = true;
  for (int i = 0; i < tuned_count; ++i) {
    // Arguments come first and in the same order in both programs.
    if (tuned_buffers[i].role != kOutput) continue;
    const size_t bytes = (size_t)tuned_buffers[i].elements * size_of(tuned_buffers[i].type);
    std::vector<char> got(bytes), want(bytes);
    check(cudaMemcpy(got.data(), tuned_memory[i], bytes, cudaMemcpyDeviceToHost));
    check(cudaMemcpy(want.data(), reference_memory[i], bytes, cudaMemcpyDeviceToHost));
    right = same(got, want, tuned_buffers[i]) && right;
  }
  const double us = time_us(tuned_memory.data());
  std::printf("%.2f us", us);
  if (kFlops > 0) std::printf(", %.1f GFLOP/s", kFlops / us * 1e-3);
  std::printf("\n");
  return right ? 0 : 1;
}
)cuda";

std::string Main(const ir::Program& reference) {
  std::string store, load;
  for (const TypeFacts& f : kTypes) {
    if (f.functions == nullptr ||
        std::ranges::find(reference.buffers, f.type, &ir::Buffer::type) == reference.buffers.end())
      continue;
    store += fmt::format(
        "    case {0}: ((reference::{1}*)to)[i] = reference::float_to_{2}((float)x); break;\n",
        f.name, ir::TypeName(f.type), f.functions);
    load += fmt::format(
        "    case {0}: return reference::{2}_to_float(((const reference::{1}*)from)[i]);\n", f.name,
        ir::TypeName(f.type), f.functions);
  }
  std::string text = kMain;
  const auto put = [&](std::string_view mark, const std::string& code) {
    text.replace(text.find(mark), mark.size(), code);
  };
  put("SHORT_STORE", store);
  put("SHORT_LOAD", load);
  return text;
}

}  // namespace

StatusOr<ExportedFile> ExportCuda(const ExportedKernel& kernel) {
  KILN_ASSIGN_OR_RETURN(const auto steps, schedule::ParseSteps(kernel.steps));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(kernel.dag, steps));
  KILN_ASSIGN_OR_RETURN(const ir::Program tuned, lower::Lower(state, {.gpu = true}));
  const dag::DagText whole{kernel.dag, kernel.ranges};
  KILN_ASSIGN_OR_RETURN(const dag::DagText wide, dag::WithWideSums(whole));
  KILN_ASSIGN_OR_RETURN(const ir::Program reference,
                        lower::Lower(schedule::State(wide.dag), {.gpu = true}));
  KILN_ASSIGN_OR_RETURN(const codegen::CudaSource tuned_source, codegen::GenerateCuda(tuned));
  KILN_ASSIGN_OR_RETURN(const codegen::CudaSource reference_source,
                        codegen::GenerateCuda(reference));
  const dag::ErrorBound bound = BoundOf(kernel);
  const std::vector<dag::InputFacts> inputs = dag::InputsOf(whole);
  KILN_ASSIGN_OR_RETURN(const std::string tuned_table,
                        BufferTable("tuned_buffers", tuned, bound, inputs));
  KILN_ASSIGN_OR_RETURN(const std::string reference_table,
                        BufferTable("reference_buffers", reference, bound, inputs));
  ExportedFile file;
  const std::string arch = codegen::ArchFor(tuned_source, kernel.arch);
  file.arch_flag = arch == kernel.arch
                       ? "-arch=" + arch
                       : fmt::format("-gencode=arch=compute_{0},code=sm_{0}", arch.substr(3));
  const bool has_tensor_maps = HasTensorMaps(tuned_source);
  file.text =
      Head(kernel, file.arch_flag, has_tensor_maps) + InNamespace("tuned", tuned_source.text) +
      "// The same computation, one thread per output element, with large sums in float64.\n" +
      InNamespace("reference", reference_source.text) + kDeclarations + tuned_table +
      reference_table +
      fmt::format("const double kFlops = {:g};  // 0: not known\n\n",
                  std::max(0.0, kernel.flop_count)) +
      (has_tensor_maps ? kTensorMaps : "") + LaunchFunction("tuned", tuned_source) +
      LaunchFunction("reference", reference_source) + Main(reference);
  return file;
}

}  // namespace kiln::client
