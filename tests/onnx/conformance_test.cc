// Runs the cases of Debian's libonnx-testdata: none fails, and as many pass as is known to be
// possible.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file/file.h"
#include "tests/onnx/case.h"

namespace kiln {
namespace {

struct Folder {
  const char* name;
  int cases, least_passes;
};

class ConformanceTest : public ::testing::TestWithParam<Folder> {};

TEST_P(ConformanceTest, NoneFails) {
  if (!FileExists(kOnnxTestData)) GTEST_SKIP() << "libonnx-testdata is not installed";
  Tally tally;
  for (const std::string& folder : FindCases(JoinPath(kOnnxTestData, GetParam().name)))
    Count(std::filesystem::path(folder).filename().string(), RunCase(folder), tally);
  EXPECT_EQ(tally.total(), GetParam().cases);
  EXPECT_EQ(tally.fail, 0) << fmt::format("{}", fmt::join(tally.failures, "\n"));
  EXPECT_EQ(tally.too_large, 0);
  EXPECT_EQ(tally.wrong_data, 0);
  EXPECT_GE(tally.pass, GetParam().least_passes);
}

INSTANTIATE_TEST_SUITE_P(All, ConformanceTest,
                         ::testing::Values(Folder{"node", 932, 863},
                                           Folder{"pytorch-converted", 82, 82},
                                           Folder{"pytorch-operator", 35, 35},
                                           Folder{"simple", 23, 7}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::erase(name, '-');
                           return name;
                         });

// The suite must fail a wrong evaluator, so that its passes mean something.
TEST(ConformanceRunnerTest, SeesWrongOutputs) {
  const std::string folder = JoinPath(kOnnxTestData, "node/test_relu");
  if (!FileExists(folder)) GTEST_SKIP() << "libonnx-testdata is not installed";
  EXPECT_EQ(RunCase(folder).kind, CaseResult::Kind::kPass);
  const auto identity = [](const graph::Graph&, std::span<const ir::NDArray> inputs) {
    return std::vector<ir::NDArray>(inputs.begin(), inputs.end());
  };
  const CaseResult wrong = RunCase(folder, {.evaluate = identity});
  EXPECT_EQ(wrong.kind, CaseResult::Kind::kFail);
  EXPECT_NE(wrong.detail.find("elements differ"), std::string::npos) << wrong.detail;
  const auto fails = [](const graph::Graph&, std::span<const ir::NDArray>) {
    return StatusOr<std::vector<ir::NDArray>>(Internal("no device"));
  };
  EXPECT_EQ(RunCase(folder, {.evaluate = fails}).detail, "no device");
  EXPECT_EQ(RunCase(folder, {.max_steps = 1}).kind, CaseResult::Kind::kTooLarge);
}

}  // namespace
}  // namespace kiln
