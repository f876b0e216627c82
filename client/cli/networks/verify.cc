// kiln verify checks that a compiled network computes what it should.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/console/terminal.h"
#include "base/process/subprocess.h"
#include "base/text/counted.h"
#include "base/text/utf8.h"
#include "client/check/verify_network.h"
#include "client/cli/measuring_flags.h"
#include "client/cli/network_flags.h"
#include "client/cli/networks/commands.h"
#include "client/cli/networks/network_files.h"
#include "client/cli/networks/verify_folder.h"
#include "client/cli/session_flags.h"
#include "client/view/json.h"

namespace kiln::client {
namespace {

// The exit status where the check could not be made.
constexpr int kBadInput = 2;

struct VerifyFlags {
  // Path of a compiled network, or of a folder of compiled files and logs.
  std::string path;
  // "x=in.npy". Inputs that are not given are random.
  std::vector<std::string> inputs, expected;
  // True: each kernel is checked by itself as well.
  bool kernels = false;
  // Relative, absolute; empty: by type.
  std::vector<double> tolerance;
  uint64_t seed = 1;
  int threads = 0, gpu = 0;
  // The next two are for folders.
  double most_slower = 30;
  double timeout_s = 600;
};

std::string VerdictJson(std::string_view kind, const Verdict& verdict) {
  return fmt::format("{{\"{}\":{},\"max_error\":{},\"right\":{},\"problem\":{}}}", kind,
                     JsonString(verdict.name), verdict.max_error, verdict.problem.empty(),
                     JsonString(verdict.problem));
}

std::string VerdictText(const Verdict& verdict) {
  if (!verdict.problem.empty()) return "WRONG: " + verdict.problem;
  if (verdict.online == 0) return "right";
  return fmt::format("right, {} as an online softmax may be (docs/text-form.md)",
                     Counted(verdict.online, "element"));
}

void AddRows(std::string_view kind, const std::vector<Verdict>& verdicts, Table& table) {
  for (const Verdict& verdict : verdicts) {
    table.AddRow({fmt::format("{} {}", kind, verdict.name),
                  fmt::format("{:.1e}", verdict.max_error), VerdictText(verdict)});
  }
}

int64_t Wrong(const std::vector<Verdict>& verdicts) {
  return std::ranges::count_if(verdicts,
                               [](const Verdict& verdict) { return !verdict.problem.empty(); });
}

void PrintReport(const VerifyReport& report, const std::string& path) {
  Table table(
      {{"What", Table::kLeft, 16}, {"Max error", Table::kRight}, {"Verdict", Table::kLeft, 16}});
  AddRows("kernel", report.kernels, table);
  AddRows("output", report.outputs, table);
  fmt::print("{}", table.ToString(OutputColumns(STDOUT_FILENO)));
  fmt::print("{}: {} of {} wrong", path, Wrong(report.outputs),
             Counted(std::ssize(report.outputs), "output"));
  if (!report.kernels.empty())
    fmt::print(", {} of {}", Wrong(report.kernels), Counted(std::ssize(report.kernels), "kernel"));
  fmt::print("\n");
}

// Returns the exit status: 1 if something is wrong.
StatusOr<int> Verify(const VerifyFlags& flags, bool json) {
  KILN_ASSIGN_OR_RETURN(const auto file, runtime::NetworkFile::Open(flags.path));
  const runtime::Network& network = file->network();
  VerifyOptions options;
  options.kernels = flags.kernels;
  options.tolerance = ToleranceOf(flags.tolerance);
  options.executor.threads = flags.threads;
  options.executor.gpu = flags.gpu;
  KILN_ASSIGN_OR_RETURN(options.inputs, InputArrays(flags.inputs, network, flags.seed));
  KILN_ASSIGN_OR_RETURN(const auto expected,
                        NamedFiles(flags.expected, network.outputs, "--expect"));
  for (const NamedFile& named : expected) {
    KILN_ASSIGN_OR_RETURN(options.expected[named.tensor],
                          ReadArray(named.path, network.outputs[named.tensor]));
  }
  const auto report = VerifyNetwork(file, options);
  if (!report.ok()) return Annotate(report.status(), flags.path);
  if (json) {
    for (const Verdict& verdict : report->kernels)
      fmt::print("{}\n", VerdictJson("kernel", verdict));
    for (const Verdict& verdict : report->outputs)
      fmt::print("{}\n", VerdictJson("output", verdict));
  } else {
    PrintReport(*report, flags.path);
  }
  return report->AllRight() ? 0 : 1;
}

// Runs this program again.
StatusOr<RunResult> RunThisProgram(const std::vector<std::string>& words, absl::Duration patience) {
  SubprocessOptions options;
  KILN_ASSIGN_OR_RETURN(const std::string executable, CurrentExecutable());
  options.argv = {executable};
  options.argv.insert(options.argv.end(), words.begin(), words.end());
  options.output = options.error = SubprocessOptions::Stream::kPipe;
  return RunToEnd(std::move(options), {}, patience);
}

// Returns what the processes of a folder are told.
VerifyFolderOptions FolderOptions(const VerifyFlags& flags) {
  VerifyFolderOptions options;
  options.most_slower = flags.most_slower;
  options.patience = absl::Seconds(flags.timeout_s);
  options.bench_words = {"--threads", fmt::format("{}", flags.threads), "--gpu",
                         fmt::format("{}", flags.gpu)};
  options.verify_words = options.bench_words;
  // Only the times of single kernels are asked for.
  options.bench_words.insert(options.bench_words.end(), {"--repeat", "1", "--min-repeat-ms", "1"});
  options.verify_words.insert(options.verify_words.end(),
                              {"--seed", fmt::format("{}", flags.seed)});
  if (flags.kernels) options.verify_words.emplace_back("--kernels");
  if (!flags.tolerance.empty()) {
    options.verify_words.insert(
        options.verify_words.end(),
        {"--tolerance", fmt::format("{}", fmt::join(flags.tolerance, ","))});
  }
  return options;
}

// Prints a file's row as soon as it is known, and the table at the end.
StatusOr<int> VerifyFolder(const VerifyFlags& flags, bool json) {
  if (!flags.inputs.empty() || !flags.expected.empty()) {
    return InvalidArgument("--input and --expect are for one file, and {} is a folder", flags.path);
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<std::string> paths, FilesToVerify(flags.path));
  const VerifyFolderOptions options = FolderOptions(flags);
  std::vector<VerifiedFile> files;
  for (const std::string& path : paths) {
    files.push_back(VerifyFile(path, options, RunThisProgram));
    if (!json) continue;
    fmt::print("{}\n", VerifiedJson(files.back()));
    std::fflush(stdout);
  }
  if (!json) fmt::print("{}", VerifiedTable(files, OutputColumns(STDOUT_FILENO)));
  return ExitStatusOf(files);
}

// Says why the check could not be made.
StatusOr<int> OrBadInput(StatusOr<int> exit_status) {
  if (exit_status.ok()) return exit_status;
  std::fflush(stdout);
  fmt::print(stderr, "kiln: {}\n", Printable(Message(exit_status.status())));
  return kBadInput;
}

// Adds the flags of folders.
void AddFolder(CLI::App& verify, VerifyFlags& flags) {
  verify
      .add_option("--most-slower", flags.most_slower,
                  "of a folder: a file whose kernels or records take longer than it says by more "
                  "percent has failed; 0 = none has")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("PERCENT")
      ->capture_default_str();
  verify.add_option("--timeout-s", flags.timeout_s, "of a folder: limit of each check and timing")
      ->check(CLI::Range(1.0, 86'400.0))
      ->capture_default_str();
}

}  // namespace

Run AddVerify(CLI::App& verify, SessionFlags& session) {
  const auto flags = std::make_shared<VerifyFlags>();
  verify.description(
      "compare the outputs of a compiled network with a reference on this machine's CPU; of a "
      "folder all compiled files and logs, and their times");
  verify
      .add_option("file", flags->path,
                  "a compiled network (*.kiln), or a folder with such files and logs of records")
      ->required();
  verify.add_flag("--kernels", flags->kernels, "each kernel by itself, too");
  verify
      .add_option("--input", flags->inputs,
                  "an input's array, NAME= where there are several [random numbers]")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  verify
      .add_option("--expect", flags->expected,
                  "what an output should be, instead of what the reference gives")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  AddTolerance(verify, flags->tolerance);
  verify.add_option("--seed", flags->seed, "of the random numbers")
      ->check(NotNegative())
      ->capture_default_str();
  AddExecutor(verify, flags->threads, flags->gpu);
  AddFolder(verify, *flags);
  session.AddJson(verify);
  return [flags](const Session& session) {
    std::error_code error;
    const bool is_folder = std::filesystem::is_directory(flags->path, error);
    return OrBadInput(is_folder ? VerifyFolder(*flags, session.json)
                                : Verify(*flags, session.json));
  };
}

}  // namespace kiln::client
