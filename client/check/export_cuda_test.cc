// Tests that nvcc compiles exported files, if there is an nvcc.
#include "client/view/export_cuda.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <set>

#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/status_testing.h"
#include "client/check/samples.h"
#include "client/check/selftest_programs.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kNvcc[] = "/usr/local/cuda/bin/nvcc";

StatusOr<ExportedFile> Exported(const SelfTestProgram& program) {
  KILN_ASSIGN_OR_RETURN(target::Target target, target::ParseTarget("cuda -arch=sm_90"));
  target = TargetFor(program, std::move(target));
  ExportedKernel kernel;
  KILN_ASSIGN_OR_RETURN(kernel.dag, program.workload.Build());
  KILN_ASSIGN_OR_RETURN(kernel.steps, StepsOf(program, kernel.dag, target, 1));
  kernel.description = program.workload.Description();
  kernel.workload_key = "[\"key\"]";
  kernel.target = "cuda -arch=sm_90";
  kernel.arch = "sm_90";
  kernel.device = "Some GPU";
  kernel.cost_s = 12.5e-6;
  kernel.flop_count = 1e6;
  kernel.file_name = "conv.cu";
  return ExportCuda(kernel);
}

std::vector<SelfTestProgram> Programs() {
  return SelfTestPrograms(*target::ParseTarget("cuda -arch=sm_90"));
}

// Returns the program of this kind.
SelfTestProgram Program(std::string_view kind) {
  for (const SelfTestProgram& program : Programs()) {
    if (kind == program.kind) return program;
  }
  KILN_CHECK(false, "no program of kind {}", kind);
  return Programs()[0];
}

TEST(ExportCudaTest, FillsInputsInTheirRanges) {
  ASSERT_OK_AND_ASSIGN(const dag::DagText text, dag::ParseDagText(R"(
@range(0.5, 2.0)
input x: float32[64, 128]
input w: float32[64, 128]
A[t: 64, n: 64] = sum(k: 128) log(x[t, k]) * w[n, k]
)"));
  ExportedKernel kernel;
  kernel.dag = text.dag;
  kernel.ranges = text.ranges;
  kernel.steps = "[]";
  kernel.target = "cuda -arch=sm_90";
  kernel.arch = "sm_90";
  ASSERT_OK_AND_ASSIGN(const ExportedFile file, ExportCuda(kernel));
  for (const char* table : {"tuned_buffers", "reference_buffers"}) {
    EXPECT_THAT(file.text.substr(file.text.find(table)),
                HasSubstr("{\"x\", kInput, kFloat, 8192LL, 0LL, 0.5, 2, "));
  }
}

TEST(ExportCudaTest, SaysWhatItIsAndHowToCompileIt) {
  ASSERT_OK_AND_ASSIGN(const ExportedFile file, Exported(Program("tiled convolution")));
  const std::string& text = file.text;
  for (const char* part :
       {"conv2d_nhwc 1,14,14,64,32,3,3,1,1 + bias + relu", "[\"key\"]", "Some GPU", "12.50 us",
        "nvcc -arch=sm_90 -O3 -o conv conv.cu", "[\"", "namespace reference {"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("extern \"C\"")));
}

TEST(ExportCudaTest, EveryKindCompilesWithNvcc) {
  if (!FileExists(kNvcc)) GTEST_SKIP() << "there is no " << kNvcc;
  const TempDir folder = *TempDir::Make("export-test");
  // One file with all programs takes nvcc much less time than a file for each.
  std::string all, arch_flag = "-arch=sm_90";
  std::set<std::string> headers;
  int count = 0;
  for (const char* kind :
       {"tiled convolution", "shared memory above 48 KiB", "several kernels", "clusters of blocks",
        "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "argmax"}) {
    SCOPED_TRACE(kind);
    ASSERT_OK_AND_ASSIGN(const ExportedFile file, Exported(Program(kind)));
    const std::string& text = file.text;
    EXPECT_THAT(text, HasSubstr("nvcc " + file.arch_flag + " "));
    // sm_90a has everything that sm_90 has.
    if (file.arch_flag != "-arch=sm_90") arch_flag = file.arch_flag;
    const std::string name = fmt::format("part{}.cu", count++);
    ASSERT_OK(WriteFile(folder.Join(name), text));
    all += fmt::format("#define main main_{0}\nnamespace part{0} {{\n", count);
    // Headers are included before the namespaces.
    std::string body;
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at) + 1;
      const std::string line = text.substr(at, end - at);
      if (line.starts_with("#include")) {
        headers.insert(line);
      } else {
        body += line;
      }
      at = end;
    }
    all += body + fmt::format("}}\n#undef main\n");
  }
  ASSERT_OK(WriteFile(
      folder.Join("all.cu"),
      fmt::format("{}{}int main() {{ return part1::main_1(); }}\n", fmt::join(headers, ""), all)));
  SubprocessOptions options;
  options.argv = {kNvcc, arch_flag, "-O3", "-o", folder.Join("all"), folder.Join("all.cu")};
  options.output = options.error = SubprocessOptions::Stream::kPipe;
  ASSERT_OK_AND_ASSIGN(const RunResult result, RunToEnd(std::move(options), {}, absl::Minutes(4)));
  EXPECT_TRUE(result.exit.ok()) << result.exit.ToString() << "\n" << result.output << result.error;
}

}  // namespace
}  // namespace kiln::client
