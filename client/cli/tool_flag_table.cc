#include "client/cli/tool_flag_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/grpc_server.h"
#include "client/check/special_values.h"
#include "client/cli/compilation_target.h"
#include "client/view/format.h"
#include "client/view/render.h"
#include "proto/job_defaults.h"

namespace kiln::client {

void ToolFlagTable::AddTo(CLI::App& app) {
  AddOps(app);
  AddTemplates(app);
  AddCheck(app);
  AddTasks(app);
  AddSchedule(app);
  AddCompile(app);
  AddRun(app);
  AddVerify(app);
  AddBench(app);
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

void ToolFlagTable::AddTemplates(CLI::App& app) {
  CLI::App* templates = flag_table_.Add(
      app, "templates", "list the schedule templates, or print one or its knobs",
      Plain([this] { return TemplatesCommand(templates_, flag_table_.session()); }));
  templates->add_option("template", templates_.what,
                        "one that is listed, or a file (*.tmpl); alone: its text is printed; or a "
                        "kernel of yours (*.cu, *.c) with --space");
  templates->add_option("--space", templates_.space, "of a kernel: its parameters and launch")
      ->type_name("FILE.toml");
  templates->add_option("op", templates_.arguments.op,
                        "the operator or text file (*.te) that it is to schedule [of a listed one "
                        "its operator]");
  AddWorkloadArguments(*templates, templates_.arguments);
  templates->add_option("--target", templates_.target, "cuda or llvm [as for kiln tune]");
  templates
      ->add_option("--config", templates_.config,
                   "instead of the knobs: their values at this index, and the schedule")
      ->type_name("INDEX")
      ->check(NotNegative());
  flag_table_.AddScheduler(*templates);
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
                      Plain([this] { return TasksCommand(tasks_, flag_table_.session()); }));
  tasks
      ->add_option("network", tasks_.network.what,
                   "network:NAME (docs/zoo.md), a model (*.onnx) or a network's text (*.graph)")
      ->required();
  AddNetworkArguments(*tasks, tasks_.network);
  AddLayout(*tasks, tasks_.network.layout);
  tasks->add_option("--dtype", tasks_.network.dtype, "of network:NAME: type of its floats")
      ->capture_default_str();
  tasks->add_option("--target", tasks_.target, "what it is for: cuda or llvm [as for kiln tune]");
  tasks
      ->add_option("--variants", tasks_.variants,
                   "convolutions as they stand, by Winograd's method where it can be, or both")
      ->check(CLI::IsMember({"direct", "winograd", "all"}))
      ->capture_default_str();
  AddLayoutRewrite(*tasks, tasks_.layout_rewrite);
  tasks->add_flag("--include-simple-tasks", tasks_.include_simple,
                  "also what has no sums: elementwise functions and moves");
  tasks->add_flag("--dag", tasks_.dags, "the text of each task's computation, too");
  tasks->add_option("--as", tasks_.form, "instead of the tasks: graph, the network's text")
      ->check(CLI::IsMember({"graph"}));
  tasks
      ->add_option("--after", tasks_.after,
                   "with --as graph: after the pass of this name, or all [before all]")
      ->type_name("PASS");
  flag_table_.AddScheduler(*tasks);
}

void ToolFlagTable::AddSchedule(CLI::App& app) {
  CLI::App* schedule = flag_table_.Add(
      app, "schedule", "a good schedule from the declaration alone, at once: nothing is measured",
      Plain([this] { return ScheduleCommand(schedule_, flag_table_.session()); }));
  schedule->add_option("what", schedule_.arguments.op, "an operator (with --args) or a text file")
      ->required();
  AddWorkloadArguments(*schedule, schedule_.arguments);
  schedule->add_option("--target", schedule_.target,
                       "what it is for: llvm, llvm -mcpu=..., cuda -arch=sm_90 [as for kiln tune]");
  AddMath(*schedule, schedule_.target);
  schedule->add_option("--as", schedule_.form, "the form to print, as those of kiln show")
      ->check(CLI::IsMember(RenderForms()))
      ->capture_default_str();
  schedule->add_option("-o,--output", schedule_.output, "also a file that runs, as kiln compile's")
      ->type_name("FILE");
  schedule->add_option("--seed", schedule_.seed, "of everything random")
      ->check(NotNegative())
      ->capture_default_str();
  flag_table_.AddScheduler(*schedule);
}

void ToolFlagTable::AddCompile(CLI::App& app) {
  CLI::App* compile = flag_table_.Add(
      app, "compile",
      "a network, or one operator, with the best records of its tasks, as a file that runs",
      Plain([this] { return CompileCommand(compile_, flag_table_.session()); }));
  compile
      ->add_option("what", compile_.network.what,
                   "network:NAME (docs/zoo.md), a model (*.onnx), a network's text (*.graph); or a "
                   "network of one kernel: an operator (with --args), a text file, a job, a trial "
                   "(JOB/N), the number of a record")
      ->required();
  AddNetworkArguments(*compile, compile_.network);
  AddLayout(*compile, compile_.network.layout);
  compile->add_option("--args", compile_.arguments.args, "of an operator, for instance 512,512,512")
      ->type_name("N,N,...");
  compile
      ->add_option("--dtype", compile_.network.dtype,
                   "of network:NAME or an operator: type of its floats")
      ->capture_default_str();
  compile->add_option("--out-dtype", compile_.arguments.out_dtype,
                      "of an operator: type of sums and results [as --dtype]");
  compile->add_option("--epilogue", compile_.arguments.epilogue,
                      "of an operator: what follows it, for instance bias,relu");
  AddLets(*compile, compile_.arguments.lets);
  compile->add_option("--task", compile_.task, "of a job that has several tasks: which one")
      ->check(CLI::NonNegativeNumber);
  compile->add_option("-o,--output", compile_.output, "the file")
      ->type_name("FILE")
      ->capture_default_str();
  compile->add_option(
      "--target", compile_.target,
      "what it is for: cuda -arch=sm_90, llvm -mcpu=... [as for kiln tune; of a record its own]");
  AddMath(*compile, compile_.target);
  compile->add_option("--device-name", compile_.device,
                      "the model of the device, for people [that of the records]");
  compile
      ->add_option("--variants", compile_.variants,
                   "convolutions as they stand, by Winograd's method where it can be, or as is "
                   "faster by the records")
      ->check(CLI::IsMember({"direct", "winograd", "all"}))
      ->capture_default_str();
  AddLayoutRewrite(*compile, compile_.layout_rewrite);
  compile->add_flag("--strict", compile_.strict,
                    "refuse a network of which a task was never tuned for the target");
  compile->add_flag("--kernels", compile_.kernels, "list the kernels");
  compile->add_option("--seed", compile_.seed, "of schedules that are chosen without measuring")
      ->check(NotNegative())
      ->capture_default_str();
  flag_table_.AddPlace(*compile);
}

void ToolFlagTable::AddRun(CLI::App& app) {
  CLI::App* run = flag_table_.Add(
      app, "run", "a compiled network on arrays of numpy's files",
      Plain([this] { return RunNetworkCommand(run_, flag_table_.session().json); }));
  run->add_option("file", run_.path, "what kiln compile wrote (*.kiln)")->required();
  run->add_option("--input", run_.inputs, "an input's array, NAME= where there are several")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  run->add_option("--output", run_.outputs, "where an output's array goes")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  run->add_flag("--random", run_.random, "random numbers for inputs that are not given");
  run->add_option("--seed", run_.seed, "of the random numbers")
      ->check(NotNegative())
      ->capture_default_str();
  AddExecutor(*run, run_.threads, run_.gpu);
  flag_table_.AddJson(*run);
}

StatusOr<int> ToolFlagTable::RunVerify() const {
  VerifyFlags flags = verify_;
  flags.tolerance = ToleranceOf(tolerance_);
  return VerifyCommand(flags, flag_table_.session().json);
}

void ToolFlagTable::AddVerify(CLI::App& app) {
  CLI::App* verify = flag_table_.Add(
      app, "verify",
      "does a compiled network compute what it should: its outputs against a reference on this "
      "machine's CPU",
      [this] { return RunVerify(); });
  verify->add_option("file", verify_.path, "what kiln compile wrote (*.kiln)")->required();
  verify->add_flag("--kernels", verify_.kernels, "each kernel by itself, too");
  verify
      ->add_option("--input", verify_.inputs,
                   "an input's array, NAME= where there are several [random numbers]")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  verify
      ->add_option("--expect", verify_.expected,
                   "what an output should be, instead of what the reference gives")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  AddTolerance(*verify, tolerance_);
  verify->add_option("--seed", verify_.seed, "of the random numbers")
      ->check(NotNegative())
      ->capture_default_str();
  AddExecutor(*verify, verify_.threads, verify_.gpu);
  flag_table_.AddJson(*verify);
}

void ToolFlagTable::AddBench(CLI::App& app) {
  CLI::App* bench =
      flag_table_.Add(app, "bench", "how fast a compiled network runs here",
                      Plain([this] { return BenchCommand(bench_, flag_table_.session().json); }));
  bench->add_option("file", bench_.path, "what kiln compile wrote (*.kiln)")->required();
  bench->add_option("--repeat", bench_.repeat, "readings")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  bench->add_option("--min-repeat-ms", bench_.min_repeat_ms, "least time of a reading")
      ->check(CLI::Range(0.0, 3.6e6))
      ->capture_default_str();
  bench->add_flag("--profile", bench_.profile, "each kernel by itself, too");
  AddExecutor(*bench, bench_.threads, bench_.gpu);
  flag_table_.AddJson(*bench);
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
  const JobFlags job = options_.Job("llvm");
  ConformanceFlags flags = conformance_;
  Session here = flag_table_.session();
  here.scheduler.clear();
  KILN_ASSIGN_OR_RETURN(flags.target, TargetOrDefault(flags.target, here));
  flags.options = job.options;
  KILN_RETURN_IF_ERROR(AddFaults(job.faults, flags.options));
  if (flags.set == "special-values") {
    constexpr uint32_t kMostCandidates = 4;
    return CheckSpecialValues(
        {.target = flags.target,
         .only = flags.only,
         .seed = flags.options.seed(),
         .candidates = static_cast<int>(std::clamp(flags.options.trials(), 1U, kMostCandidates))},
        flag_table_.session().json);
  }
  return ConformanceCommand(flags, flag_table_.session());
}

void ToolFlagTable::AddConformance(CLI::App& app) {
  CLI::App* conformance = flag_table_.Add(
      app, "conformance",
      "random candidates of many workloads on this machine's device, and what became of each",
      [this] { return RunConformance(); });
  conformance->add_option("--target", conformance_.target, "cuda, llvm or null [as for kiln tune]");
  options_.AddTrials(*conformance, "candidates of each workload");
  conformance
      ->add_option("--set", conformance_.set,
                   "usual: layers, products, reductions; matrix-units: products of the types that "
                   "matrix units multiply, of float32 with -math=tf32 in the target; large: "
                   "tensors of more than 2^31 elements, for devices with 40 GiB; special-values: "
                   "every operator with NaN, infinities, -0 and denormals, up to 4 candidates of "
                   "each, without a database")
      ->check(CLI::IsMember({"usual", "matrix-units", "large", "special-values"}))
      ->capture_default_str();
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
