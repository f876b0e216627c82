// Features of programs that do not change with the rest of the compiler.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/file/file.h"
#include "base/hash/digest.h"
#include "base/status_testing.h"
#include "compiler/features/features.h"
#include "compiler/ir/program_text.h"

namespace kiln::features {
namespace {

// The version, and the digest of all features of the programs in testdata.
constexpr int kVersion = 8;
constexpr std::string_view kDigest = "a260c52b24982c05";

// Adds one line for each row. Logarithms of two C libraries may differ in their last bit, so
// values are rounded.
void Print(const FloatMatrix& rows, std::string& text) {
  for (int row = 0; row < rows.rows(); ++row) {
    for (const float value : rows.row(row)) text += fmt::format("{:.3f} ", value);
    text += "\n";
  }
}

// Saved models are not loaded for another version. Where this fails, features changed: raise
// kFeatureVersion and write it down here, with the digest that the failure prints.
TEST(FeatureVersion, RisesWithEveryChangeOfFeatures) {
  std::string text;
  for (const auto& [name, target_text] :
       {std::pair("conv", "llvm"), std::pair("matmul", "cuda -arch=sm_90"),
        std::pair("large_matmul", "cuda -arch=sm_90"),
        std::pair("attention", "cuda -arch=sm_90")}) {
    ASSERT_OK_AND_ASSIGN(const std::string content,
                         ReadFile(fmt::format("compiler/features/testdata/{}.txt", name)));
    ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(content));
    ASSERT_OK_AND_ASSIGN(const target::Target target, target::ParseTarget(target_text));
    const device::DeviceModel device =
        target.is_gpu() ? device::FilledGpu({}, target.GpuArch()) : device::DeviceModel();
    const FloatMatrix rows = ExtractFeatures(program, target, {}, device);
    ASSERT_GT(rows.rows(), 1) << name;
    Print(rows, text);
  }
  EXPECT_EQ(kFeatureVersion, kVersion);
  EXPECT_EQ(Sha256Hex(text).substr(0, 16), kDigest);
}

}  // namespace
}  // namespace kiln::features
