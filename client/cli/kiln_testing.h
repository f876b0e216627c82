// Runs the real binary, for tests.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/status_testing.h"
#include "base/subprocess.h"

namespace kiln::client {

inline constexpr char kKiln[] = "client/cli/kiln";

inline SubprocessOptions KilnOptions(const std::vector<std::string>& words) {
  SubprocessOptions options;
  options.argv = {kKiln};
  options.argv.insert(options.argv.end(), words.begin(), words.end());
  options.env = {"KILN_DB=", "KILN_SCHEDULER=", "KILN_TRACKER=", "KILN_SECRET_FILE=", "NO_COLOR=1"};
  options.output = options.error = SubprocessOptions::Stream::kPipe;
  return options;
}

// Runs kiln to its end. A test that fails or takes a minute gets an exit code of -1.
inline RunResult RunKiln(const std::vector<std::string>& words, std::string_view input = {}) {
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
inline std::string KilnPrints(const std::vector<std::string>& words, std::string_view input = {}) {
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

}  // namespace kiln::client
