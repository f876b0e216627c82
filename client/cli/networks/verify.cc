// kiln verify checks that a compiled network computes what it should.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "client/check/verify_network.h"
#include "client/cli/measuring_flags.h"
#include "client/cli/network_flags.h"
#include "client/cli/networks/commands.h"
#include "client/cli/networks/network_files.h"
#include "client/cli/session_flags.h"
#include "client/view/json.h"

namespace kiln::client {
namespace {

struct VerifyFlags {
  // Path of a compiled network.
  std::string path;
  // "x=in.npy". Inputs that are not given are random.
  std::vector<std::string> inputs, expected;
  // True: each kernel is checked by itself as well.
  bool kernels = false;
  // Relative, absolute; empty: by type.
  std::vector<double> tolerance;
  uint64_t seed = 1;
  int threads = 0, gpu = 0;
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

}  // namespace

Run AddVerify(CLI::App& verify, SessionFlags& session) {
  const auto flags = std::make_shared<VerifyFlags>();
  verify.description(
      "compare the outputs of a compiled network with a reference on this "
      "machine's CPU");
  verify.add_option("file", flags->path, "a compiled network (*.kiln)")->required();
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
  session.AddJson(verify);
  return [flags](const Session& session) { return Verify(*flags, session.json); };
}

}  // namespace kiln::client
