// Tests that cuda_kernels.cu compiles to cuda_kernels.ptx.
#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/status_testing.h"

namespace kiln::runner {
namespace {

TEST(CudaPtxTest, IsMadeFromItsSource) {
  SubprocessOptions options;
  const char* home = std::getenv("CUDA_HOME");
  options.argv = {"runner/generate_ptx.sh", "runner/cuda_kernels.cu"};
  const std::string nvcc = std::string(home != nullptr ? home : "/usr/local/cuda") + "/bin/nvcc";
  if (!FileExists(nvcc)) GTEST_SKIP() << "no nvcc at " << nvcc;
  options.env = {"NVCC=" + nvcc};
  ASSERT_OK_AND_ASSIGN(const RunResult made, RunToEnd(options));
  ASSERT_TRUE(made.exit.ok()) << made.error;
  ASSERT_OK_AND_ASSIGN(const std::string kept, ReadFile("runner/cuda_kernels.ptx"));
  const auto version = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  if (version(made.output) != version(kept)) {
    GTEST_SKIP() << "other compiler: " << version(made.output) << ", kept: " << version(kept);
  }
  EXPECT_TRUE(made.output == kept)
      << "run runner/generate_ptx.sh runner/cuda_kernels.cu > runner/cuda_kernels.ptx";
}

}  // namespace
}  // namespace kiln::runner
