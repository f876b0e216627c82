#include "client/cli/flag_table.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <utility>

#include "base/grpc_server.h"

namespace kiln::client {

Run Plain(std::function<Status()> run) {
  return [run = std::move(run)]() -> StatusOr<int> {
    InitGrpc();
    KILN_RETURN_IF_ERROR(run());
    return 0;
  };
}

CLI::App* FlagTable::Add(CLI::App& parent, const std::string& name, const std::string& what,
                         Run run) {
  CLI::App* command = parent.add_subcommand(name, what);
  command->callback([this, run = std::move(run)] { run_ = run; });
  return command;
}

void FlagTable::AddSchedulerAddress(CLI::App& command) {
  command
      .add_option_function<std::string>(
          "--scheduler",
          [this](const std::string& value) {
            session_.scheduler = value;
            scheduler_given_ = true;
          },
          "HOST:PORT of the scheduler to use")
      ->type_name("HOST:PORT");
}

void FlagTable::AddScheduler(CLI::App& command) {
  AddSchedulerAddress(command);
  AddSecret(command);
  AddJson(command);
}

void FlagTable::AddPlace(CLI::App& command) {
  AddSchedulerAddress(command);
  command
      .add_option_function<std::string>(
          "--db",
          [this](const std::string& value) {
            session_.db = value;
            db_given_ = true;
          },
          "without a scheduler: the database file of jobs and records [kiln.db]")
      ->type_name("FILE");
  AddSecret(command);
  AddJson(command);
}

void FlagTable::AddSecret(CLI::App& command) {
  command
      .add_option("--secret-file", session_.secret_file,
                  "the file with the secret of the farm [KILN_SECRET_FILE]")
      ->type_name("FILE");
}

void FlagTable::AddJson(CLI::App& command) {
  command.add_flag("--json", session_.json, "print JSON, one value a line");
}

// A flag wins over the environment. In the environment the scheduler wins over the database.
void FlagTable::ReadEnvironment() {
  if (!db_given_) ReadVariable("KILN_DB", session_.db);
  if (!db_given_ && !scheduler_given_) ReadVariable("KILN_SCHEDULER", session_.scheduler);
}

StatusOr<int> FlagTable::RunNamed() {
  ReadEnvironment();
  if (db_given_ && scheduler_given_) {
    return InvalidArgument(
        "--db and --scheduler exclude each other: a scheduler has its own "
        "database");
  }
  if (run_ == nullptr) return InvalidArgument("incomplete command; see kiln --help");
  return run_();
}

CLI::Validator NotNegative() {
  const auto check = [](const std::string& value) {
    return value.starts_with('-')
               ? fmt::format("{} is below 0, expected a whole number from 0", value)
               : std::string();
  };
  return CLI::Validator(check, "");
}

void AddSubject(CLI::App& command, FlagTable& table, SubjectFlags& subject,
                const std::string& target) {
  command.add_option("what", subject.what,
                     "a job, a trial (JOB/N), a workload key, the number of a record, an operator "
                     "(with --args), or a text file; nothing: the newest job");
  command.add_option("--op", subject.arguments.op, "an operator or text file");
  AddWorkloadArguments(command, subject.arguments);
  command.add_option("--target", subject.target, target);
  command.add_option("--task", subject.task, "only this task of a job");
  table.AddPlace(command);
}

void AddMath(CLI::App& command, std::string& target) {
  const auto set = [&target](const std::string& math) {
    if (math == "full") return;
    if (target.empty()) target = "cuda";
    target += " -math=" + math;
  };
  command
      .add_option_function<std::string>(
          "--math", set,
          "of cuda: tf32 lets matrix units compute sums of products of float32, of which each "
          "factor is rounded to 10 bits [full]")
      ->check(CLI::IsMember({"full", "tf32"}))
      ->type_name("MATH");
}

void AddKernelSpace(CLI::App& command, SubjectFlags& subject) {
  command
      .add_option("--space", subject.kernel_space,
                  "with a kernel of yours (*.cu, *.c): its parameters and launch, as kiln tune "
                  "takes them")
      ->type_name("FILE.toml");
}

void AddWorkloadArguments(CLI::App& command, WorkloadArguments& arguments) {
  command
      .add_option("--args", arguments.args, "its arguments, for instance 512,512,512; see kiln ops")
      ->type_name("N,N,...");
  command.add_option("--dtype", arguments.dtype, "type of the inputs")->capture_default_str();
  command.add_option("--out-dtype", arguments.out_dtype, "type of sums and results [as --dtype]");
  command.add_option("--epilogue", arguments.epilogue, "what follows it, for instance bias,relu");
  AddLayout(command, arguments.layout);
  AddLets(command, arguments.lets);
}

void AddLets(CLI::App& command, std::vector<std::string>& lets) {
  command
      .add_option("--let", lets,
                  "the value of a param of a text file, for instance N=512; any number of them")
      ->type_name("NAME=NUMBER")
      ->allow_extra_args(false);
}

void AddLayout(CLI::App& command, std::string& layout) {
  command
      .add_option("--layout", layout,
                  "of network:NAME: NHWC or NCHW [NHWC]; of conv2d and other operators that have "
                  "several: which one")
      ->transform(CLI::IsMember({"nhwc", "nchw", "nwc", "ncw", "ndhwc", "ncdhw"}, CLI::ignore_case))
      ->type_name("LAYOUT");
}

void AddRecordSelection(CLI::App& command, RecordFilterFlags& filter) {
  command.add_option("--job", filter.job, "only of this job");
  command.add_option("--workload", filter.workload,
                     "only of this workload key, or of this computation by its identity");
  command.add_option("--op", filter.arguments.op,
                     "only of this operator or text file, with --args");
  AddWorkloadArguments(command, filter.arguments);
  command.add_option("--device", filter.device, "only of this device, by its name");
  command.add_option("--since", filter.since,
                     "only from this time on: 30m, 12h, 7d ago, or 2026-11-21");
  command.add_option("--until", filter.until, "only up to this time, said as --since");
}

void AddNetworkArguments(CLI::App& command, NetworkArguments& arguments) {
  constexpr char kGroup[] = "Networks";
  command.add_option("--batch", arguments.batch, "of network:NAME: images or texts at once")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str()
      ->group(kGroup);
  command.add_option("--sequence", arguments.sequence, "of network:NAME: tokens of a text")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--input", arguments.inputs,
                  "of a model: the extents of an input that its file leaves open, for instance "
                  "x=1,3,224,224; any number of them")
      ->type_name("NAME=N,N,...")
      ->allow_extra_args(false)
      ->group(kGroup);
}

void AddLayoutRewrite(CLI::App& command, std::string& layout_rewrite) {
  command
      .add_option("--layout-rewrite", layout_rewrite,
                  "of a network: do kernels take weights as they are, or laid out before in the "
                  "order in which their loops read them [pretransformed for llvm, else none]")
      ->check(CLI::IsMember({kRewriteNone, kRewritePreTransformed}))
      ->group("Networks");
}

CLI::Option* AddTolerance(CLI::App& command, std::vector<double>& tolerance) {
  return command
      .add_option("--tolerance", tolerance,
                  "how far results may be off the reference's: of each value, and of the largest "
                  "one; 0 = by type, 1e-3,1e-4 for float32 (docs/runner.md)")
      ->delimiter(',')
      ->expected(1, 2)
      ->allow_extra_args(false)
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("RELATIVE[,ABSOLUTE]");
}

v1::Tolerance ToleranceOf(const std::vector<double>& tolerance) {
  v1::Tolerance message;
  if (!tolerance.empty()) message.set_relative(tolerance[0]);
  if (tolerance.size() > 1) message.set_absolute(tolerance[1]);
  return message;
}

void AddExecutor(CLI::App& command, int& threads, int& gpu) {
  command.add_option("--threads", threads, "cores of a CPU; 0 = all")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  command.add_option("--gpu", gpu, "which of several GPUs")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

void ReadVariable(const char* name, std::string& value) {
  const char* text = std::getenv(name);
  if (text != nullptr && *text != '\0') value = text;
}

}  // namespace kiln::client
