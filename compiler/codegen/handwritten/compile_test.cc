#include "compiler/codegen/handwritten/compile.h"

#include <array>
#include <vector>

#include "base/file/file.h"
#include "base/process/file_access.h"
#include "base/process/subprocess.h"
#include "base/status_testing.h"
#include "compiler/codegen/backends/backends.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/handwritten/c_compiler.h"
#include "compiler/codegen/handwritten/compiler_confinement.h"
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

// ---- effects that a source may try to have through a compiler

class Confinement : public testing::Test {
 protected:
  void SetUp() override {
    if (!CanRestrictFiles()) GTEST_SKIP() << "this kernel has no Landlock";
    // The file belongs to the user who compiles, and only that user may read it, as for a secret.
    ASSERT_OK(WriteFileAtomically(secret_, "int kept_secret_token;\n", 0600));
  }

  TempDir folder_ = *TempDir::Make("confinement-test");
  const std::string secret_ = folder_.Join("secret");
};

constexpr std::string_view kPlainSpace =
    "kernel = \"scale\"\noperator = \"x\"\narguments = [\"x\", \"y\"]\n[parameters]\nB = [1]\n";

TEST_F(Confinement, TheCCompilerReadsItsOwnFilesAlone) {
  const std::string function = "void scale(const float* x, float* y) { *y = *x; }\n";
  ASSERT_OK(Compile(kPlainSpace, Language::kC,
                    "#include <immintrin.h>\n#include <math.h>\n" + function, "llvm"));
  for (const std::string& line :
       {fmt::format("#include \"{}\"", secret_), std::string("#include \"/etc/shadow\""),
        std::string("#include </etc/passwd>"), std::string("#include \"/proc/self/environ\""),
        std::string("#include \"/dev/zero\""),
        fmt::format("#define FILE <{}>\n#include FILE", secret_),
        fmt::format("#include \"../../../../../../../..{}\"", secret_),
        fmt::format("asm(\".incbin \\\"{}\\\"\");", secret_),
        fmt::format("asm(\".include \\\"{}\\\"\");", secret_)}) {
    const auto compiled = Compile(kPlainSpace, Language::kC, line + "\n" + function, "llvm");
    ASSERT_FALSE(compiled.ok()) << line;
    const std::string said(Message(compiled.status()));
    EXPECT_THAT(said, HasSubstr("with the compiler's own headers and libraries alone")) << line;
    EXPECT_THAT(said, testing::Not(HasSubstr("kept_secret_token")));
    EXPECT_THAT(said, testing::Not(HasSubstr("root:")));
  }
}

// Simulates an allowed option that writes files: the compiler is a script.
TEST_F(Confinement, TheProcessOfACompilerWritesItsScratchFolderAlone) {
  ASSERT_OK_AND_ASSIGN(const TempDir scratch, TempDir::Make("confinement-scratch"));
  SubprocessOptions options;
  options.argv = {
      "/bin/sh", "-c",
      fmt::format("echo x > {0}/new; echo y >> {1}; cat {1}; rm {1}; echo z > {2}/kept; "
                  "kill -0 $PPID && echo killed; echo > /dev/null && echo null",
                  folder_.path(), secret_, scratch.path())};
  const FileAccess access = CCompilerAccess("/usr/bin/cc", scratch.path());
  options.confine = [&] { return ConfineCCompiler(access); };
  options.own_process_group = false;
  options.limits = CCompilerLimits();
  ASSERT_OK_AND_ASSIGN(const RunResult result, RunToEnd(options));
  EXPECT_EQ(result.output, "null\n") << result.error;
  EXPECT_FALSE(FileExists(folder_.Join("new")));
  EXPECT_TRUE(FileExists(scratch.Join("kept")));
  ASSERT_OK_AND_ASSIGN(const std::string secret, ReadFile(secret_));
  EXPECT_EQ(secret, "int kept_secret_token;\n");
}

TEST_F(Confinement, NoNetworkAndNoLargeFiles) {
  ASSERT_OK_AND_ASSIGN(const TempDir scratch, TempDir::Make("confinement-scratch"));
  SubprocessOptions options;
  // The script sleeps first, because the limits are set right after its start.
  options.argv = {"/bin/bash", "-c",
                  "sleep 0.2; (echo > /dev/tcp/127.0.0.1/9) 2>&1; ulimit -f; ulimit -c"};
  const FileAccess access = CCompilerAccess("/usr/bin/cc", scratch.path());
  options.confine = [&] { return ConfineCCompiler(access); };
  options.own_process_group = false;
  options.limits = CCompilerLimits();
  ASSERT_OK_AND_ASSIGN(const RunResult result, RunToEnd(options));
  EXPECT_THAT(result.output, HasSubstr("Operation not permitted"));
  EXPECT_THAT(result.output, HasSubstr("\n262144\n0\n"));
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

TEST_F(HandwrittenCuda, NvrtcReadsItsOwnFilesAlone) {
  if (!CanRestrictFiles()) GTEST_SKIP() << "this kernel has no Landlock";
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("confinement-test"));
  const std::string secret = folder.Join("secret");
  ASSERT_OK(WriteFileAtomically(secret, "int kept_secret_token = ;\n", 0600));
  ASSERT_OK(Compile(kSpaceOfCuda, Language::kCuda, "#include <cuda_fp16.h>\n" + std::string(kCuda),
                    "cuda -arch=sm_90"));
  for (const std::string& path : {secret, std::string("/etc/passwd")}) {
    const auto compiled =
        Compile(kSpaceOfCuda, Language::kCuda, fmt::format("#include \"{}\"\n{}", path, kCuda),
                "cuda -arch=sm_90");
    ASSERT_FALSE(compiled.ok());
    EXPECT_THAT(Message(compiled.status()),
                HasSubstr("with the compiler's own headers and libraries alone"));
    EXPECT_THAT(Message(compiled.status()), testing::Not(HasSubstr("kept_secret_token")));
    EXPECT_THAT(Message(compiled.status()), testing::Not(HasSubstr("root:")));
  }
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
