#include "compiler/codegen/cuda/compile.h"

#include <dlfcn.h>
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/programs_testing.h"
#include "compiler/ir/program_text.h"

namespace kiln::codegen {
namespace {
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kElfMachineCuda = 190;

class CudaCompile : public testing::Test {
 protected:
  void SetUp() override {
    const StatusOr<NvrtcInfo> nvrtc = FindNvrtc();
    if (!nvrtc.ok()) GTEST_SKIP() << Message(nvrtc.status());
  }
};

TEST_F(CudaCompile, MakesACubin) {
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(kTiledMatmul));
  for (const std::string arch : {"sm_80", "sm_90", "sm_90a"}) {
    ASSERT_OK_AND_ASSIGN(const target::Target target, target::ParseTarget("cuda -arch=" + arch));
    ASSERT_OK_AND_ASSIGN(const CudaCompiled result, CompileCudaWithReport(program, target));
    const Compiled& compiled = result.compiled;
    Elf64_Ehdr header;
    ASSERT_GT(compiled.binary.size(), sizeof header);
    std::memcpy(&header, compiled.binary.data(), sizeof header);
    EXPECT_EQ(std::memcmp(header.e_ident, ELFMAG, SELFMAG), 0);
    EXPECT_EQ(header.e_machine, kElfMachineCuda);
    ASSERT_EQ(compiled.args.size(), 3U);
    EXPECT_EQ(compiled.args[2].name, "C");
    EXPECT_EQ(compiled.args[2].scope, ir::Scope::kOutput);
    ASSERT_EQ(compiled.launches.size(), 1U);
    EXPECT_EQ(compiled.launches[0].symbol, "matmul");
    EXPECT_THAT(compiled.launches[0].grid, ElementsAre(4, 1, 1));
    EXPECT_THAT(compiled.launches[0].block, ElementsAre(64, 1, 1));
    EXPECT_THAT(compiled.launches[0].args, ElementsAre(0, 1, 2));
    ASSERT_EQ(result.cubin.kernels.size(), 1U);
    EXPECT_EQ(result.cubin.kernels[0].name, "matmul");
    EXPECT_GT(result.cubin.kernels[0].registers, 16);
    EXPECT_EQ(result.cubin.kernels[0].spill_store_bytes, 0);
  }
}

// What is left out for speed is not in the code.
// A sandbox may not show the path by which the loader knows the second library.
TEST_F(CudaCompile, NvrtcsSecondLibraryIsOpenBeforeItIsAskedFor) {
  ASSERT_OK_AND_ASSIGN(const NvrtcInfo nvrtc, FindNvrtc());
  const std::string name = fmt::format("libnvrtc-builtins.so.{}.{}", nvrtc.major, nvrtc.minor);
  EXPECT_NE(dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD), nullptr) << name;
}

TEST_F(CudaCompile, MakesTheSameOfTheSameText) {
  for (const std::string_view text :
       {std::string_view(kTiledMatmul), std::string_view(kReduction),
        // With a header, and a function of the math library.
        std::string_view("program(a: input float16[64], b: output float16[64]) { stage s kernel k "
                         "grid [1, 1, 1] block [64, 1, 1] { threadIdx.x t in 0..64 { "
                         "b[t] = exp(a[t]) @ s } } }")}) {
    ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(text));
    ASSERT_OK_AND_ASSIGN(const CudaSource source, GenerateCuda(program));
    ASSERT_OK_AND_ASSIGN(const Cubin cubin, CompileSource(source, "sm_90"));
    ASSERT_OK_AND_ASSIGN(const Cubin again, CompileSource(source, "sm_90"));
    ASSERT_OK_AND_ASSIGN(const Cubin plain, CompileCubin(source.text, "sm_90"));
    EXPECT_EQ(cubin.binary, again.binary);
    EXPECT_EQ(cubin.binary, plain.binary);
  }
}

TEST_F(CudaCompile, VectorAccessesReachTheMachine) {
  const auto ptx = [](std::string_view text) -> std::string {
    const StatusOr<ir::Program> program = ir::ParseProgram(text);
    if (!program.ok()) return std::string(Message(program.status()));
    const StatusOr<CudaSource> source = GenerateCuda(*program);
    if (!source.ok()) return std::string(Message(source.status()));
    const StatusOr<std::string> result = CompilePtx(source->text, "sm_90");
    return result.ok() ? *result : std::string(Message(result.status()));
  };
  EXPECT_THAT(ptx(kTiledMatmul), AllOf(HasSubstr("ld.global.nc.v4"), HasSubstr("st.shared.v4"),
                                       HasSubstr("ld.shared.v4"), HasSubstr("fma.rn.f32")));
  EXPECT_THAT(ptx("program(a: input float16[64], b: output float16[64]) { stage s kernel k grid "
                  "[1, 1, 1] block [8, 1, 1] { threadIdx.x t in 0..8 { vectorize v in 0..8 { "
                  "b[t*8 + v] = a[t*8 + v] * a[t*8 + v] @ s } } } }"),
              AllOf(HasSubstr("ld.global.nc.v4"), HasSubstr("st.global.v4")));
}

// Loads of inputs that nothing writes may be moved by the compiler; they must not pass the wait.
TEST_F(CudaCompile, KernelsThatWaitReadNothingBefore) {
  for (const std::string_view text : {kTiledMatmul, kReduction}) {
    ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(text));
    ASSERT_OK_AND_ASSIGN(const CudaSource source,
                         GenerateCuda(program, {.waits_for_previous = true}));
    ASSERT_OK_AND_ASSIGN(const std::string ptx, CompilePtx(source.text, "sm_90"));
    const size_t wait = ptx.find("griddepcontrol.wait"), load = ptx.find("ld.global");
    ASSERT_NE(wait, ptx.npos);
    EXPECT_LT(wait, load);
    EXPECT_EQ(ptx.find("griddepcontrol", wait + 1), ptx.npos) << "one kernel";
  }
}

TEST_F(CudaCompile, FastMathIsAChoice) {
  const std::string source =
      "extern \"C\" __global__ void k(float* x) { x[0] = expf(x[0]) / x[1]; }";
  ASSERT_OK_AND_ASSIGN(const std::string exact, CompilePtx(source, "sm_90"));
  EXPECT_THAT(exact, HasSubstr("div.rn.f32"));
  ASSERT_OK_AND_ASSIGN(const std::string fast, CompilePtx(source, "sm_90", {.fast_math = true}));
  EXPECT_THAT(fast, HasSubstr("div.approx.ftz.f32"));
}

TEST_F(CudaCompile, ReportsSpills) {
  // 100 values that live at once, in 1024 threads.
  const std::string source = R"(
extern "C" __global__ void __launch_bounds__(1024) k(const float* a, float* b) {
  float v[100];
#pragma unroll
  for (int i = 0; i < 100; ++i) v[i] = a[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 100; ++i) b[i * 1024 + threadIdx.x] = v[i] * v[i * 37 % 100] + v[i * 11 % 100];
})";
  ASSERT_OK_AND_ASSIGN(const Cubin cubin, CompileCubin(source, "sm_90"));
  ASSERT_EQ(cubin.kernels.size(), 1U);
  EXPECT_EQ(cubin.kernels[0].registers, 64);
  EXPECT_GT(cubin.kernels[0].spill_store_bytes, 0);
  EXPECT_GT(cubin.kernels[0].spill_load_bytes, 0);
}

// On a machine with a driver, the second time brought a cubin without a report.
TEST_F(CudaCompile, EachTimeBringsAReport) {
  const std::string source = "extern \"C\" __global__ void f(float* a) { a[threadIdx.x] = 1; }";
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(const Cubin cubin, CompileCubin(source, "sm_90"));
    ASSERT_EQ(cubin.kernels.size(), 1U);
    EXPECT_GT(cubin.kernels[0].registers, 0);
  }
}

TEST(KeepsCubins, SinceTwelveNine) {
  const auto keeps = [](int major, int minor) {
    return KeepsCubins({.path = "", .major = major, .minor = minor, .archs = {}});
  };
  EXPECT_FALSE(keeps(11, 8));
  EXPECT_FALSE(keeps(12, 8));
  EXPECT_TRUE(keeps(12, 9));
  EXPECT_TRUE(keeps(13, 0));
}

TEST_F(CudaCompile, Refuses) {
  EXPECT_THAT(CompileCubin("void f( {", "sm_90"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("kernel.cu(1)")));
  for (const std::string arch : {"90", "sm_", "sm_60", "sm_90x", ""}) {
    EXPECT_THAT(CompileCubin("", arch),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected one like sm_90")));
  }
  EXPECT_THAT(CompileCubin("", "sm_91"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("it knows sm_")));
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(kReduction));
  EXPECT_THAT(CompileCuda(program, {.kind = &target::kCuda}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("names no GPU architecture")));
}

TEST(CudaCompileWithout, SaysWhereItLooked) {
  // Loaded once per process: a fresh one looks for itself.
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        setenv("KILN_NVRTC", "/no/such/libnvrtc.so", 1);
        const StatusOr<NvrtcInfo> nvrtc = FindNvrtc();
        fprintf(stderr, "%s\n",
                nvrtc.ok() ? "found" : std::string(Message(nvrtc.status())).c_str());
        exit(nvrtc.ok() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "no NVRTC here.*/no/such/libnvrtc.so");
}

}  // namespace
}  // namespace kiln::codegen
