// kiln verify checks that a compiled network computes what it should.
#include <fmt/format.h>
#include <unistd.h>

#include "base/counted.h"
#include "base/terminal.h"
#include "client/check/verify_network.h"
#include "client/cli/commands.h"
#include "client/cli/network_files.h"
#include "client/view/json.h"

namespace kiln::client {
namespace {

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

}  // namespace

StatusOr<int> VerifyCommand(const VerifyFlags& flags, bool json) {
  KILN_ASSIGN_OR_RETURN(const auto file, runtime::NetworkFile::Open(flags.path));
  const runtime::Network& network = file->network();
  VerifyOptions options;
  options.kernels = flags.kernels;
  options.tolerance = flags.tolerance;
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

}  // namespace kiln::client
