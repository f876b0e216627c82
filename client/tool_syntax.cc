#include "client/tool_syntax.h"

#include <CLI/CLI.hpp>

#include "base/grpc_server.h"
#include "client/wording.h"

namespace kiln::client {

void ToolSyntax::AddTo(CLI::App& app) {
  AddOps(app);
  AddCheck(app);
  AddDoctor(app);
  AddSelfTest(app);
  AddConformance(app);
  AddVersion(app);
}

void ToolSyntax::AddOps(CLI::App& app) {
  CLI::App* ops =
      syntax_.Add(app, "ops", "list the operators, or the parameters of one",
                  Plain([this] { return OpsCommand(operator_, syntax_.session().json); }));
  ops->add_option("operator", operator_, "one operator");
  syntax_.AddJson(*ops);
}

void ToolSyntax::AddCheck(CLI::App& app) {
  CLI::App* check =
      syntax_.Add(app, "check", "check a text file (or operator): canonical form, FLOPs, key",
                  Plain([this] { return CheckCommand(words_, syntax_.session().json); }));
  check->add_option("file", words_.op, "the text file, or an operator with --args")->required();
  AddWords(*check, words_);
  syntax_.AddJson(*check);
}

void ToolSyntax::AddDoctor(CLI::App& app) {
  CLI::App* doctor = syntax_.Add(app, "doctor", "what this machine offers and lacks",
                                 Plain([this] { return DoctorCommand(syntax_.session()); }));
  syntax_.AddPlace(*doctor);
}

StatusOr<int> ToolSyntax::RunSelfTest() const {
  InitGrpc();
  return SelfTest(selftest_, syntax_.session().json);
}

void ToolSyntax::AddSelfTest(CLI::App& app) {
  CLI::App* selftest = syntax_.Add(
      app, "selftest",
      "try the device of this machine: programs of every kind, faults, a job with faults",
      [this] { return RunSelfTest(); });
  selftest->add_option("--device", selftest_.device, "cuda, cuda:0, cuda:GPU-... or cpu")
      ->capture_default_str();
  selftest->add_option("--trials", selftest_.trials, "of the job with faults")
      ->check(CLI::Range(24u, kMostTrials))
      ->capture_default_str();
  selftest->add_option("--seed", selftest_.seed, "of everything random")
      ->check(NotNegative())
      ->capture_default_str();
  selftest
      ->add_option("--slack", selftest_.slack_s, "seconds that the trial after a fault may take")
      ->capture_default_str();
  selftest->add_option("--log-dir", selftest_.log_folder,
                       "keep the logs of the processes started here");
  syntax_.AddJson(*selftest);
}

StatusOr<int> ToolSyntax::RunConformance() const {
  InitGrpc();
  const JobFlags job = options_.Job();
  ConformanceFlags flags = conformance_;
  flags.options = job.options;
  KILN_RETURN_IF_ERROR(AddFaults(job.faults, flags.options));
  return ConformanceCommand(flags, syntax_.session());
}

void ToolSyntax::AddConformance(CLI::App& app) {
  CLI::App* conformance = syntax_.Add(
      app, "conformance",
      "random candidates of many workloads on this machine's device, and what became of each",
      [this] { return RunConformance(); });
  conformance->add_option("--target", conformance_.target, "cuda, llvm or null")
      ->capture_default_str();
  options_.AddTrials(*conformance, "candidates of each workload");
  conformance->add_option("--only", conformance_.only,
                          "only workloads whose name has this, for instance softmax");
  options_.AddSeed(*conformance);
  conformance->add_option("--log-dir", conformance_.log_folder,
                          "keep the logs of the processes started here");
  options_.AddMeasuring(*conformance);
  syntax_.AddPlace(*conformance);
}

void ToolSyntax::AddVersion(CLI::App& app) {
  CLI::App* version = syntax_.Add(app, "version", "print the version",
                                  Plain([this] { return VersionCommand(syntax_.session().json); }));
  syntax_.AddJson(*version);
}

}  // namespace kiln::client
