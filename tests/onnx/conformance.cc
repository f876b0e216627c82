// Runs the test cases of ONNX's own suite and says which of them Kiln computes.
//
// usage: conformance [--compiled | --seed N] [--cases] [--all] [--shard I/N] [FOLDER ...]
//   FOLDER       holds folders of cases: node, pytorch-converted, ...; or is a case itself. Without
//                one: the data of Debian's libonnx-testdata
//   --compiled   computes them by networks that are compiled for this CPU, instead of by the oracle
//   --seed N     computes them by compiled networks with other schedules: those of this seed
//   --cases      prints a line for each case as well
//   --all        also runs cases for which the oracle needs more than some 20 seconds
//   --shard I/N  runs the I-th of N parts alone, I from 0; a case's name decides its part
// The exit status is 1 if a case fails.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "tests/onnx/case.h"
#include "tests/onnx/compiled.h"

namespace kiln {
namespace {

struct Arguments {
  bool lists_cases = false;
  CaseOptions options = {};
  Shard shard = {};
  std::vector<std::string> folders = {};
};

// Reads "2/8".
Shard ReadShard(const std::string& text) {
  Shard shard;
  char end = 0;
  const bool ok = std::sscanf(text.c_str(), "%d/%d%c", &shard.index, &shard.count, &end) == 2 &&
                  shard.index >= 0 && shard.index < shard.count;
  if (ok) return shard;
  fmt::print(stderr, "--shard {}: expected I/N, I from 0 to N-1\n", text);
  std::exit(2);
}

Arguments ReadArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--compiled") {
      arguments.options.evaluate = CompiledEvaluator();
    } else if (argument == "--seed" && i + 1 < argc) {
      arguments.options.evaluate = CompiledEvaluator(std::strtoull(argv[++i], nullptr, 10));
    } else if (argument == "--shard" && i + 1 < argc) {
      arguments.shard = ReadShard(argv[++i]);
    } else if (argument == "--cases") {
      arguments.lists_cases = true;
    } else if (argument == "--all") {
      arguments.options.max_steps = std::numeric_limits<double>::infinity();
    } else {
      arguments.folders.push_back(argument);
    }
  }
  if (arguments.folders.empty()) arguments.folders.emplace_back(kOnnxTestData);
  return arguments;
}

std::string_view KindName(CaseResult::Kind kind) {
  switch (kind) {
    case CaseResult::Kind::kPass:
      return "pass";
    case CaseResult::Kind::kPassFixed:
      return "pass (fixed)";
    case CaseResult::Kind::kUnsupported:
      return "unsupported";
    case CaseResult::Kind::kTooLarge:
      return "too large";
    case CaseResult::Kind::kWrongData:
      return "wrong data";
    case CaseResult::Kind::kFail:
      return "FAIL";
  }
  return "";
}

std::string NameOf(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

Tally RunFolder(const std::vector<std::string>& cases, const Arguments& arguments) {
  Tally tally;
  for (const std::string& folder : cases) {
    const CaseResult result = RunCase(folder, arguments.options);
    Count(NameOf(folder), result, tally);
    if (!arguments.lists_cases) continue;
    fmt::print("{:<14}{}{}{}\n", KindName(result.kind), NameOf(folder),
               result.detail.empty() ? "" : ": ", result.detail);
    std::fflush(stdout);
  }
  return tally;
}

void PrintRow(std::string_view name, const Tally& tally) {
  fmt::print("{:<20}{:>7}{:>7}{:>7}{:>13}{:>11}{:>12}{:>6}\n", name, tally.total(), tally.pass,
             tally.fixed, tally.unsupported, tally.too_large, tally.wrong_data, tally.fail);
}

void Accumulate(const Tally& part, Tally& sum) {
  sum.pass += part.pass;
  sum.fixed += part.fixed;
  sum.unsupported += part.unsupported;
  sum.too_large += part.too_large;
  sum.wrong_data += part.wrong_data;
  sum.fail += part.fail;
  sum.failures.insert(sum.failures.end(), part.failures.begin(), part.failures.end());
  sum.lacks.insert(sum.lacks.end(), part.lacks.begin(), part.lacks.end());
}

// Prints what the unsupported cases lack, most frequent first.
void PrintLacks(const Tally& tally) {
  std::map<std::string, int> counts;
  for (const std::string& lack : tally.lacks) ++counts[lack];
  std::vector<std::pair<int, std::string>> sorted;
  for (const auto& [lack, count] : counts) sorted.emplace_back(-count, lack);
  std::ranges::sort(sorted);
  for (const auto& [count, lack] : sorted) fmt::print("{:>5}  {}\n", -count, lack);
}

int Run(const Arguments& arguments) {
  std::vector<std::pair<std::string, std::vector<std::string>>> folders;
  for (const std::string& folder : arguments.folders) {
    if (FileExists(JoinPath(folder, "model.onnx"))) folders.push_back({NameOf(folder), {folder}});
    std::vector<std::string> groups = {folder};
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
      if (entry.is_directory()) groups.push_back(entry.path().string());
    std::ranges::sort(groups);
    for (const std::string& group : groups)
      if (auto cases = FindCases(group, arguments.shard); !cases.empty())
        folders.emplace_back(NameOf(group), cases);
  }
  Tally all;
  std::vector<std::pair<std::string, Tally>> rows;
  for (const auto& [name, cases] : folders) {
    rows.emplace_back(name, RunFolder(cases, arguments));
    Accumulate(rows.back().second, all);
  }
  fmt::print("\n{:<20}{:>7}{:>7}{:>7}{:>13}{:>11}{:>12}{:>6}\n", "", "cases", "pass", "fixed",
             "unsupported", "too large", "wrong data", "fail");
  for (const auto& [name, tally] : rows) PrintRow(name, tally);
  PrintRow("all", all);
  fmt::print(
      "fixed: passes with inputs, that say axes, shapes or lengths, fixed to their values\n");
  if (!all.lacks.empty()) fmt::print("\nunsupported:\n");
  PrintLacks(all);
  for (const std::string& failure : all.failures) fmt::print("FAIL {}\n", failure);
  return all.fail == 0 && all.total() > 0 ? 0 : 1;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) { return kiln::Run(kiln::ReadArguments(argc, argv)); }
