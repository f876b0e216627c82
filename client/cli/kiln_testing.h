// Runs the real binary, for tests. KilnTest is their fixture.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/process/subprocess.h"
#include "base/status_testing.h"

namespace kiln::client {

// Words of a command line.
using Words = std::vector<std::string>;

inline constexpr char kKiln[] = "client/cli/kiln";

inline SubprocessOptions KilnOptions(const Words& words) {
  SubprocessOptions options;
  options.argv = {kKiln};
  options.argv.insert(options.argv.end(), words.begin(), words.end());
  options.env = {"KILN_DB=",   "KILN_SCHEDULER=",   "KILN_TRACKER=",
                 "KILN_KEYS=", "KILN_SECRET_FILE=", "NO_COLOR=1"};
  options.output = options.error = SubprocessOptions::Stream::kPipe;
  return options;
}

// Runs kiln to its end. A test that fails or takes a minute gets an exit code of -1.
inline RunResult RunKiln(const Words& words, std::string_view input = {}) {
  SubprocessOptions options = KilnOptions(words);
  if (!input.empty()) options.input = SubprocessOptions::Stream::kPipe;
  auto result = RunToEnd(std::move(options), input, absl::Minutes(1));
  EXPECT_OK(result.status());
  if (result.ok()) return *std::move(result);
  RunResult failed;
  failed.exit.code = -1;
  return failed;
}

// Expects kiln to succeed, and returns its stdout.
inline std::string KilnPrints(const Words& words, std::string_view input = {}) {
  const RunResult result = RunKiln(words, input);
  EXPECT_TRUE(result.exit.ok()) << result.exit.ToString() << "\n" << result.error;
  return result.output;
}

// Parses the output of --json: a value a line.
inline std::vector<nlohmann::json> JsonLines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// A test of commands, with a folder and a database of its own.
class KilnTest : public testing::Test {
 protected:
  // Writes a file of the folder. Returns its path.
  std::string File(const std::string& name, const std::string& text) const {
    std::string path = folder_.Join(name);
    KILN_CHECK(WriteFile(path, text).ok());
    return path;
  }
  Words WithDb(Words words) const {
    words.insert(words.end(), {"--db", db_});
    return words;
  }
  // Expects the command to succeed on the database, and returns its stdout.
  std::string Kiln(Words words, std::string_view input = {}) const {
    return KilnPrints(WithDb(std::move(words)), input);
  }
  // Expects the command to fail on the database, and returns its stderr.
  std::string Error(Words words) const {
    const RunResult result = RunKiln(WithDb(std::move(words)));
    EXPECT_EQ(result.exit.code, 1) << result.output;
    return result.error;
  }
  // Expects one sentence on stderr that starts with "kiln: ", an exit status that is not 0, and
  // nothing on stdout.
  static std::string Refused(const Words& words) {
    const RunResult result = RunKiln(words);
    EXPECT_EQ(result.exit.signal, 0);
    EXPECT_THAT(result.exit.code, testing::AnyOf(1, 2)) << result.error;
    EXPECT_THAT(result.error, testing::StartsWith("kiln: "));
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    EXPECT_EQ(result.output, "");
    return result.error;
  }

  const TempDir folder_ = *TempDir::Make("kiln-test");
  const std::string db_ = folder_.Join("kiln.db");
};

}  // namespace kiln::client
