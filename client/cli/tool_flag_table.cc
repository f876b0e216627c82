#include "client/cli/tool_flag_table.h"

#include <CLI/CLI.hpp>

#include "base/grpc_server.h"
#include "client/view/format.h"

namespace kiln::client {

void ToolFlagTable::AddTo(CLI::App& app) {
  AddOps(app);
  AddCheck(app);
  AddTasks(app);
  AddDoctor(app);
  AddSelfTest(app);
  AddConformance(app);
  AddVersion(app);
}

void ToolFlagTable::AddOps(CLI::App& app) {
  CLI::App* ops =
      flag_table_.Add(app, "ops", "list the operators, or the parameters of one",
                      Plain([this] { return OpsCommand(operator_, flag_table_.session().json); }));
  ops->add_option("operator", operator_, "one operator");
  flag_table_.AddJson(*ops);
}

void ToolFlagTable::AddCheck(CLI::App& app) {
  CLI::App* check = flag_table_.Add(
      app, "check", "check a text file (or operator): canonical form, FLOPs, key",
      Plain([this] { return CheckCommand(arguments_, flag_table_.session().json); }));
  check->add_option("file", arguments_.op, "the text file, or an operator with --args")->required();
  AddWorkloadArguments(*check, arguments_);
  flag_table_.AddJson(*check);
}

void ToolFlagTable::AddTasks(CLI::App& app) {
  CLI::App* tasks =
      flag_table_.Add(app, "tasks", "what there is to tune in a network",
                      Plain([this] { return TasksCommand(tasks_, flag_table_.session().json); }));
  tasks
      ->add_option("network", tasks_.network.what,
                   "network:NAME (docs/zoo.md), a model (*.onnx) or a network's text (*.graph)")
      ->required();
  AddNetworkArguments(*tasks, tasks_.network);
  tasks->add_option("--dtype", tasks_.network.dtype, "of network:NAME: type of its floats")
      ->capture_default_str();
  tasks->add_option("--target", tasks_.target, "what it is for: cuda or llvm")
      ->capture_default_str();
  tasks
      ->add_option("--variants", tasks_.variants,
                   "convolutions as they stand, by Winograd's method where it can be, or both")
      ->check(CLI::IsMember({"direct", "winograd", "all"}))
      ->capture_default_str();
  tasks->add_flag("--include-simple-tasks", tasks_.include_simple,
                  "also what has no sums: elementwise functions and moves");
  tasks->add_flag("--dag", tasks_.dags, "the text of each task's computation, too");
  tasks->add_option("--as", tasks_.form, "instead of the tasks: graph, the network's text")
      ->check(CLI::IsMember({"graph"}));
  tasks
      ->add_option("--after", tasks_.after,
                   "with --as graph: after the pass of this name, or all [before all]")
      ->type_name("PASS");
  flag_table_.AddJson(*tasks);
}

void ToolFlagTable::AddDoctor(CLI::App& app) {
  CLI::App* doctor =
      flag_table_.Add(app, "doctor", "what this machine offers and lacks",
                      Plain([this] { return DoctorCommand(flag_table_.session()); }));
  flag_table_.AddPlace(*doctor);
}

StatusOr<int> ToolFlagTable::RunSelfTest() const {
  InitGrpc();
  return SelfTest(selftest_, flag_table_.session().json);
}

void ToolFlagTable::AddSelfTest(CLI::App& app) {
  CLI::App* selftest = flag_table_.Add(
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
  flag_table_.AddJson(*selftest);
}

StatusOr<int> ToolFlagTable::RunConformance() const {
  InitGrpc();
  const JobFlags job = options_.Job();
  ConformanceFlags flags = conformance_;
  flags.options = job.options;
  KILN_RETURN_IF_ERROR(AddFaults(job.faults, flags.options));
  return ConformanceCommand(flags, flag_table_.session());
}

void ToolFlagTable::AddConformance(CLI::App& app) {
  CLI::App* conformance = flag_table_.Add(
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
  flag_table_.AddPlace(*conformance);
}

void ToolFlagTable::AddVersion(CLI::App& app) {
  CLI::App* version =
      flag_table_.Add(app, "version", "print the version",
                      Plain([this] { return VersionCommand(flag_table_.session().json); }));
  flag_table_.AddJson(*version);
}

}  // namespace kiln::client
