#include "compiler/codegen/handwritten/compile.h"

#include <array>
#include <vector>

#include "base/status_testing.h"
#include "compiler/codegen/backends/backends.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/handwritten/c_compiler.h"
#include "compiler/codegen/llvm/loaded_program_testing.h"
#include "compiler/dag/text.h"

namespace kiln::codegen {
namespace {

using handwritten::Language;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kSize = 96;

dag::DagPtr Scale() { return *dag::ParseDag("input x: float32[96]\ny[i: 96] = x[i] * 2.5\n"); }

StatusOr<Compiled> Compile(std::string_view space, Language language, std::string_view source,
                           std::string_view target_text,
                           const target::HardwareParams& hardware = {}) {
  KILN_ASSIGN_OR_RETURN(const auto text, handwritten::ParseSpaceFile(space, language, "scale.cu",
                                                                     std::string(source)));
  std::vector<handwritten::NamedValue> values;
  for (const handwritten::Parameter& parameter : text.parameters)
    values.emplace_back(parameter.name, parameter.values[0]);
  KILN_ASSIGN_OR_RETURN(const auto kernel, handwritten::Specialize(text, *Scale(), values));
  KILN_ASSIGN_OR_RETURN(const target::Target parsed, target::ParseTarget(target_text));
  const Backend& backend = *FindBackend(*parsed.kind);
  KILN_ASSIGN_OR_RETURN(const target::Target target, backend.Resolve(parsed));
  CompileTimes times;
  return CompileHandwritten(kernel, Scale(), backend, target, hardware, times);
}

constexpr std::string_view kSpaceOfC = R"toml(
kernel = "scale"
operator = "x"
arguments = ["y", { float32 = 2.5 }, "x", { block = "x" }, { block = "z" }, { int64 = "-1 - 9223372036854775807" }]
grid = ["96 // BLOCK", 1, 2]
options = ["-DTWICE=2"]
[parameters]
BLOCK = [16]
)toml";
constexpr std::string_view kC = R"toml(#include <stdint.h>
static void scale(float* y, float by, const float* x, int block, int half, int64_t lowest) {
  for (int i = block * BLOCK + half * BLOCK / TWICE; i < block * BLOCK + (half + 1) * BLOCK / 2; ++i)
    y[i] = lowest == INT64_MIN ? by * x[i] : 0;
}
)toml";

TEST(HandwrittenC, BlocksOfTheGridRunWithTheirNumbers) {
  ASSERT_OK_AND_ASSIGN(const Compiled compiled, Compile(kSpaceOfC, Language::kC, kC, "llvm"));
  ASSERT_EQ(compiled.args.size(), 2u);
  EXPECT_EQ(compiled.args[1].name, "y");
  ASSERT_OK_AND_ASSIGN(const LoadedProgram program, LoadedProgram::Load(compiled.binary));
  alignas(64) std::array<float, kSize> x, y{};
  for (int i = 0; i < kSize; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i);
  program.Run({x.data(), y.data()});
  for (size_t i = 0; i < kSize; ++i) EXPECT_EQ(y[i], 2.5f * x[i]) << i;
}

TEST(HandwrittenC, SaysWhatTheCompilerSays) {
  EXPECT_THAT(Compile(kSpaceOfC, Language::kC, "void scale(void) { return 1 + ; }", "llvm"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("scale.cu:1:")));
  EXPECT_THAT(Compile(kSpaceOfC, Language::kC, kC, "cuda -arch=sm_90"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("a c kernel is for target llvm")));
}

TEST(CCompiler, LevelsOfX86) {
  EXPECT_EQ(X86Level({}), "x86-64");
  EXPECT_EQ(X86Level({"popcnt", "sse4.2", "avx2"}), "x86-64-v2");
  EXPECT_EQ(X86Level({"popcnt", "sse4.2", "avx2", "fma", "bmi2", "avx512bw"}), "x86-64-v3");
  EXPECT_EQ(
      X86Level(std::vector<std::string>(X86LevelFeatures().begin(), X86LevelFeatures().end())),
      "x86-64-v4");
}

constexpr std::string_view kSpaceOfCuda = R"toml(
kernel = "scale"
operator = "x"
arguments = ["y", { float32 = 2.5 }, "x", { int32 = 96 }]
grid = ["ceil_div(96, block_size_x)"]
shared_bytes = "block_size_x * 4"
options = ["--use_fast_math"]
[parameters]
block_size_x = [32]
)toml";
constexpr std::string_view kCuda = R"toml(
__global__ void scale(float* y, float by, const float* x, int n) {
  __shared__ float tile[block_size_x];
  extern __shared__ float more[];
  const int i = blockIdx.x * block_size_x + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0;
  more[threadIdx.x] = tile[threadIdx.x];
  __syncthreads();
  if (i < n) y[i] = by * more[block_size_x - 1 - threadIdx.x];
}
template <int kN> __global__ void other(float* y) { y[0] = kN; }
template __global__ void other<3>(float*);
)toml";

class HandwrittenCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (!FindNvrtc().ok()) GTEST_SKIP() << "there is no NVRTC here";
  }
};

TEST_F(HandwrittenCuda, FindsTheKernelAndPassesNumbersByValue) {
  ASSERT_OK_AND_ASSIGN(const Compiled compiled,
                       Compile(kSpaceOfCuda, Language::kCuda, kCuda, "cuda -arch=sm_90"));
  ASSERT_EQ(compiled.launches.size(), 1u);
  const Launch& launch = compiled.launches[0];
  EXPECT_EQ(launch.symbol, "_Z5scalePffPKfi");
  EXPECT_THAT(launch.grid, ElementsAre(3, 1, 1));
  EXPECT_THAT(launch.block, ElementsAre(32, 1, 1));
  EXPECT_THAT(launch.args, ElementsAre(1, 0));
  ASSERT_EQ(launch.scalars.size(), 2u);
  EXPECT_EQ(launch.scalars[0].position, 1u);
  EXPECT_EQ(launch.scalars[0].value, std::string("\0\0\x20\x40", 4));
  EXPECT_EQ(launch.scalars[1].position, 3u);
  EXPECT_EQ(launch.scalars[1].value, std::string("\x60\0\0\0", 4));
  EXPECT_EQ(launch.dynamic_shared_bytes, 128u);
  EXPECT_EQ(launch.shared_bytes, 256u);
  EXPECT_GT(launch.registers, 0u);
}

TEST_F(HandwrittenCuda, FindsInstancesOfTemplates) {
  std::string space(kSpaceOfCuda);
  space.replace(space.find("\"scale\""), 7, "\"other<3>\"");
  ASSERT_OK_AND_ASSIGN(const Compiled compiled,
                       Compile(space, Language::kCuda, kCuda, "cuda -arch=sm_90"));
  EXPECT_THAT(compiled.launches[0].symbol, HasSubstr("other"));
}

TEST_F(HandwrittenCuda, SaysWhatIsWrong) {
  EXPECT_THAT(
      Compile(kSpaceOfCuda, Language::kCuda, "__global__ void f() { x; }", "cuda -arch=sm_90"),
      StatusIs(StatusCode::kInvalidArgument, HasSubstr("scale.cu(1): error")));
  EXPECT_THAT(Compile(kSpaceOfCuda, Language::kCuda, "__global__ void f() {}", "cuda -arch=sm_90"),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("no __global__ function scale, it has _Z1fv")));
  EXPECT_THAT(Compile(kSpaceOfCuda, Language::kCuda, kCuda, "cuda -arch=sm_90",
                      {.max_shared_memory_per_block_bytes = 200}),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("256 bytes of shared memory per block, 128 of them dynamic")));
}

}  // namespace
}  // namespace kiln::codegen
