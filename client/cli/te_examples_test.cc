// `kiln tune` of the computations of examples/te, by the real binary: each is measured, and
// computes what its text says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/file/file.h"
#include "client/cli/kiln_testing.h"

namespace kiln::client {
namespace {

TEST(TeExamples, AreTunedAndChecked) {
  const TempDir folder = *TempDir::Make("te-examples-test");
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("examples/te"))
    files.insert(entry.path().string());
  ASSERT_GE(files.size(), 15u);
  std::vector<std::string> words = {"tune"};
  words.insert(words.end(), files.begin(), files.end());
  const std::string trials = std::to_string(2 * files.size());
  for (const std::string& word :
       {std::string("--target"), std::string("llvm"), std::string("--trials"), trials,
        std::string("--json"), std::string("--db"), folder.Join("te.db"), std::string("--log-dir"),
        folder.Join("logs")})
    words.push_back(word);
  // Two programs of each computation are compiled and measured, which takes long on a loaded
  // machine.
  const auto result = RunToEnd(KilnOptions(words), {}, absl::Minutes(4));
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->exit.ok()) << result->error;
  const std::vector<nlohmann::json> events = JsonLines(result->output);
  ASSERT_FALSE(events.empty());
  const nlohmann::json& tasks = events.back()["tasks"];
  ASSERT_EQ(tasks.size(), files.size());
  for (const nlohmann::json& task : tasks) {
    EXPECT_GT(task["trials"], 0) << task;
    EXPECT_GT(task["best_cost_s"], 0) << task;
  }
  EXPECT_TRUE(events.back()["errors"].empty()) << events.back()["errors"];
}

}  // namespace
}  // namespace kiln::client
