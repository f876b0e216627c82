#include "client/cli/networks/verify_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "base/text/shell_word.h"
#include "base/text/units.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

using Json = nlohmann::ordered_json;
using Verdict = VerifiedFile::Verdict;

constexpr std::string_view kNetwork = ".kiln";
constexpr std::string_view kLogs[] = {".json", ".jsonl", ".log"};
constexpr int kBadInput = 2;

bool IsNetworkFile(const std::string& path) { return path.ends_with(kNetwork); }

bool IsLog(const std::string& path) {
  return std::ranges::any_of(kLogs, [&](std::string_view end) { return path.ends_with(end); });
}

// Returns what is said of a verdict in tables and JSON.
std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kRight:
      return "right";
    case Verdict::kWrong:
      return "WRONG";
    case Verdict::kSlower:
      return "SLOWER";
    case Verdict::kNotChecked:
      return "not checked";
  }
  return "not checked";
}

// Returns the objects of the lines; what is no object is left out.
std::vector<Json> Objects(const std::string& text) {
  std::vector<Json> objects;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object()) objects.push_back(std::move(json));
  }
  return objects;
}

double NumberOf(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_number() ? at->get<double>() : 0;
}

std::string TextOf(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? at->get<std::string>() : "";
}

bool IsFalse(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_boolean() && !at->get<bool>();
}

// Returns the program's own sentence, or how it ended.
std::string WhyItEnded(const RunResult& result) {
  std::string said = FirstLine(result.error);
  if (said.starts_with("kiln: ")) said.erase(0, 6);
  if (result.exit.signal != 0 || said.empty())
    return fmt::format("the process ended ({})", result.exit.ToString());
  return said;
}

// Sets the verdict to `wrong`, and the problem, if one of the objects says that it is not right.
void FindProblems(const std::vector<Json>& objects, const char* is_right, const char* why,
                  VerifiedFile& file) {
  int64_t wrong = 0;
  for (const Json& object : objects) {
    if (!IsFalse(object, is_right)) continue;
    if (++wrong == 1) file.problem = TextOf(object, why);
  }
  if (wrong == 0) return;
  file.verdict = Verdict::kWrong;
  if (wrong > 1) file.problem += fmt::format(" (and {} more)", wrong - 1);
}

// Sums times that are known both here and by the file.
void AddTimes(double here_s, double file_s, VerifiedFile& file) {
  if (!(here_s > 0) || !(file_s > 0) || !std::isfinite(here_s + file_s)) return;
  file.here_s += here_s;
  file.file_s += file_s;
}

// Judges the times of a file that is right.
void JudgeTimes(double most_slower, VerifiedFile& file) {
  if (most_slower <= 0 || file.verdict != Verdict::kRight) return;
  if (file.Ratio() <= 1 + most_slower / 100) return;
  file.verdict = Verdict::kSlower;
  file.problem = fmt::format("{:.2f} times the file's time, at most {:.2f} are expected",
                             file.Ratio(), 1 + most_slower / 100);
}

// Runs the program on the file. Sets the problem if it could not judge.
StatusOr<RunResult> RunWith(std::vector<std::string> words, const std::vector<std::string>& more,
                            const VerifyFolderOptions& options, const RunProgram& run) {
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("--json");
  return run(words, options.patience);
}

void VerifyNetworkFile(const VerifyFolderOptions& options, const RunProgram& run,
                       VerifiedFile& file) {
  const auto checked = RunWith({"verify", file.path}, options.verify_words, options, run);
  if (!checked.ok()) {
    file.problem = std::string(Message(checked.status()));
    return;
  }
  FindProblems(Objects(checked->output), "right", "problem", file);
  if (file.verdict == Verdict::kWrong) return;
  if (!checked->exit.ok()) {
    file.problem = WhyItEnded(*checked);
    // A program that crashes or runs for ever is wrong; a file that cannot be read is bad input.
    if (checked->exit.signal != 0) file.verdict = Verdict::kWrong;
    return;
  }
  const auto timed = RunWith({"bench", file.path, "--profile"}, options.bench_words, options, run);
  if (!timed.ok() || !timed->exit.ok()) {
    file.problem = timed.ok() ? WhyItEnded(*timed) : std::string(Message(timed.status()));
    return;
  }
  file.verdict = Verdict::kRight;
  for (const Json& bench : Objects(timed->output)) {
    const auto kernels = bench.find("kernels");
    if (kernels == bench.end() || !kernels->is_array()) continue;
    for (const Json& kernel : *kernels) {
      AddTimes(NumberOf(kernel, "seconds"), NumberOf(kernel, "expected_s"), file);
    }
  }
}

void VerifyLog(const VerifyFolderOptions& options, const RunProgram& run, VerifiedFile& file) {
  const auto measured = RunWith({"records", "measure", file.path}, {}, options, run);
  if (!measured.ok()) {
    file.problem = std::string(Message(measured.status()));
    return;
  }
  const std::vector<Json> lines = Objects(measured->output);
  std::vector<Json> checked, unchecked;
  for (const Json& line : lines) (IsFalse(line, "checked") ? unchecked : checked).push_back(line);
  FindProblems(checked, "ok", "check", file);
  if (file.verdict == Verdict::kWrong) return;
  if (!unchecked.empty()) {
    file.problem = fmt::format("{} of {} not checked: {}", unchecked.size(),
                               Counted(std::ssize(lines), "record"), TextOf(unchecked[0], "check"));
    return;
  }
  if (!measured->exit.ok()) {
    file.problem = WhyItEnded(*measured);
    return;
  }
  file.verdict = Verdict::kRight;
  for (const Json& line : lines) {
    AddTimes(NumberOf(line, "cost_s"), NumberOf(line, "logged_cost_s"), file);
  }
}

}  // namespace

StatusOr<std::vector<std::string>> FilesToVerify(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  std::error_code error;
  auto at = fs::recursive_directory_iterator(folder, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const std::string path = at->path().string();
    std::error_code of_file;
    if (at->is_regular_file(of_file) && (IsNetworkFile(path) || IsLog(path))) paths.push_back(path);
  }
  if (error) return NotFound("the folder {} cannot be read: {}", folder, error.message());
  if (paths.empty()) {
    return NotFound(
        "{} has no files to verify, expected compiled files (*.kiln) or logs of records (*.json, "
        "*.jsonl, *.log)",
        folder);
  }
  std::ranges::sort(paths);
  return paths;
}

VerifiedFile VerifyFile(const std::string& path, const VerifyFolderOptions& options,
                        const RunProgram& run) {
  VerifiedFile file{.path = path};
  if (IsNetworkFile(path)) {
    VerifyNetworkFile(options, run, file);
  } else {
    VerifyLog(options, run, file);
  }
  JudgeTimes(options.most_slower, file);
  return file;
}

int ExitStatusOf(const std::vector<VerifiedFile>& files) {
  int status = 0;
  for (const VerifiedFile& file : files) {
    if (file.verdict == Verdict::kNotChecked) return kBadInput;
    if (file.verdict != Verdict::kRight) status = 1;
  }
  return status;
}

std::string VerifiedTable(const std::vector<VerifiedFile>& files, int columns) {
  constexpr int kLeast = 12, kLines = 6;
  Table table({{"File", Table::kLeft, kLeast, kLines},
               {"Here", Table::kRight},
               {"By the file", Table::kRight},
               {"Ratio", Table::kRight},
               {"Verdict", Table::kLeft, kLeast, kLines}});
  int64_t right = 0;
  for (const VerifiedFile& file : files) {
    const bool timed = file.Ratio() > 0;
    std::string verdict(VerdictName(file.verdict));
    if (!file.problem.empty()) verdict += ": " + file.problem;
    table.AddRow({file.path, timed ? FormatSeconds(file.here_s) : "-",
                  timed ? FormatSeconds(file.file_s) : "-",
                  timed ? fmt::format("{:.2f}", file.Ratio()) : "-", std::move(verdict)});
    right += file.verdict == Verdict::kRight ? 1 : 0;
  }
  return fmt::format("{}\n{} of {} right\n", table.ToString(columns), right,
                     Counted(std::ssize(files), "file"));
}

std::string VerifiedJson(const VerifiedFile& file) {
  const auto or_null = [](double number) { return number > 0 ? Json(number) : Json(nullptr); };
  const Json json = {{"file", file.path},
                     {"verdict", VerdictName(file.verdict)},
                     {"problem", file.problem},
                     {"here_s", or_null(file.here_s)},
                     {"file_s", or_null(file.file_s)},
                     {"ratio", or_null(file.Ratio())}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kiln::client
