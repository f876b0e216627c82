// Runs a part of the cases of Debian's libonnx-testdata by networks that are compiled for this CPU.
// A case's name decides for ever whether it is in the part. `conformance --compiled` runs all
// cases.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file/file.h"
#include "tests/onnx/case.h"
#include "tests/onnx/compiled.h"

namespace kiln {
namespace {

constexpr Shard kShard{.index = 0, .count = 3};

class CompiledConformanceTest : public ::testing::TestWithParam<const char*> {};

TEST_P(CompiledConformanceTest, NoneFails) {
  if (!FileExists(kOnnxTestData)) GTEST_SKIP() << "libonnx-testdata is not installed";
  Tally tally;
  for (const std::string& folder : FindCases(JoinPath(kOnnxTestData, GetParam()), kShard)) {
    const std::string name = std::filesystem::path(folder).filename().string();
    Count(name, RunCase(folder, {.evaluate = CompiledEvaluator()}), tally);
  }
  EXPECT_GT(tally.pass, 0);
  EXPECT_EQ(tally.fail, 0) << fmt::format("{}", fmt::join(tally.failures, "\n"));
}

INSTANTIATE_TEST_SUITE_P(All, CompiledConformanceTest,
                         ::testing::Values("node", "pytorch-converted", "pytorch-operator"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace kiln
