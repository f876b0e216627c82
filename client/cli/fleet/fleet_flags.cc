#include "client/cli/fleet/fleet_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/process/subprocess.h"
#include "base/server/net.h"
#include "client/cli/session_flags.h"

namespace kiln::client {
namespace {

constexpr int kMostWorkers = 10'000;

// Returns the path as nodes see it that share this machine's file system.
StatusOr<std::string> Absolute(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return InvalidArgument("no such path: {}: {}", path, error.message());
  return absolute.lexically_normal().string();
}

std::string Variable(const char* name) {
  std::string value;
  ReadVariable(name, value);
  return value;
}

Status CheckLimits(const FleetLimits& limits, std::string_view kind) {
  if (limits.least <= limits.most) return OkStatus();
  return InvalidArgument(
      "--min-{0} is {1}, and --{0} is {2}; the least number is at most the other", kind,
      limits.least, limits.most);
}

}  // namespace

void FleetFlags::AddSize(CLI::App& command) {
  const auto number = [&](const char* flag, int& value, const std::string& help, int least = 0) {
    command.add_option(flag, value, help)
        ->check(CLI::Range(least, kMostWorkers))
        ->capture_default_str();
  };
  number("--runners", runners.most, "most runners at a time");
  number("--min-runners", runners.least, "runners that stay when nothing is to be measured");
  number("--builders", builders.most, "most builders at a time");
  number("--min-builders", builders.least, "builders that stay when nothing is to be built");
  number("--runner-slots", runner_slots,
         "devices of one runner's job, as --gres=gpu:4 gives it four", 1);
  number("--runner-cpus", runner_cpus, "cores of a runner; 0 = as many as Slurm gives a job");
  number("--builder-cpus", builder_cpus, "cores of a builder, each of which builds at a time", 1);
}

void FleetFlags::AddSlurm(CLI::App& command) {
  const auto text = [&](const char* flag, std::string& value, const char* help) {
    command.add_option(flag, value, help);
  };
  text("--partition", partition, "partition of the jobs [Slurm's default]");
  text("--builder-partition", builder_partition, "partition of the builders [that of --partition]");
  text("--constraint", constraint, "features of the nodes of runners");
  text("--gres", gres, "devices of a runner, as in gpu:1");
  text("--account", account, "account of the jobs");
  text("--qos", qos, "quality of service of the jobs");
  text("--time", time, "time limit of a job; a runner that reaches it is followed by another");
  const auto arguments = [&](const char* flag, std::vector<std::string>& values, const char* help) {
    command.add_option(flag, values, help)->type_name("ARG")->allow_extra_args(false);
  };
  arguments("--sbatch-arg", sbatch_arguments,
            "further argument of sbatch, as in --sbatch-arg=--mem=8G; may be given several times");
  arguments("--runner-sbatch-arg", runner_sbatch_arguments, "the same for runners alone");
  arguments("--builder-sbatch-arg", builder_sbatch_arguments, "the same for builders alone");
}

void FleetFlags::AddWorkers(CLI::App& command) {
  command
      .add_option("--tracker", tracker,
                  "address of the farm's tracker as nodes reach it [KILN_TRACKER]")
      ->type_name("HOST:PORT");
  command.add_option("--device", device, "what runners measure on")
      ->check(CLI::IsMember({"cpu", "cuda", "null"}))
      ->capture_default_str();
  command
      .add_option(
          "--key", keys_wanted,
          "count only jobs that wait for this key, as `kiln workers` lists it; may be given "
          "several times [keys of --device, then those of the fleet's runners]")
      ->allow_extra_args(false);
  command.add_option("--program", program, "path of kiln on the nodes [that of this program]");
  command.add_option("--listen", listen, "HOST:PORT on which workers serve; port 0 = any free one")
      ->capture_default_str();
  command.add_option("--worker-keys", worker_keys,
                     "folder of the workers' keys on the nodes [--keys]");
  command.add_option("--log-folder", log_folder, "folder of the workers' logs [this one]");
  const auto arguments = [&](const char* flag, std::vector<std::string>& values, const char* help) {
    command.add_option(flag, values, help)->type_name("ARG")->allow_extra_args(false);
  };
  arguments("--runner-arg", runner_arguments,
            "further argument of `kiln runner`, as in --runner-arg=--share=25%");
  arguments("--builder-arg", builder_arguments, "further argument of `kiln builder`");
}

void FleetFlags::AddTimes(CLI::App& command) {
  const auto seconds = [&](const char* flag, double& value, const char* help, double least) {
    command.add_option(flag, value, help)
        ->check(CLI::Range(least, 86'400.0))
        ->type_name("SECONDS")
        ->capture_default_str();
  };
  seconds("--look-every", look_every_s, "time from one look at the queues to the next", 0.1);
  seconds("--grow-after", grow_after_s, "so long a slot must be wanted before a worker is started",
          0);
  seconds("--shrink-after", shrink_after_s,
          "so long a worker must be spare before it is drained and its job is cancelled", 0);
}

void FleetFlags::Add(CLI::App& command) {
  command.add_option("--name", name, "name of the fleet; a farm may have several")
      ->capture_default_str();
  AddSize(command);
  AddWorkers(command);
  AddSlurm(command);
  AddTimes(command);
  command.add_flag("--keep", keep,
                   "leave the workers to Slurm when this program ends; without it Ctrl-C drains "
                   "them and cancels their jobs, and a second Ctrl-C leaves what is left");
  command.add_flag("--dry-run", dry_run, "print what would be submitted, and end");
}

Status FleetFlags::Check() const {
  KILN_RETURN_IF_ERROR(CheckFleetName(name));
  KILN_RETURN_IF_ERROR(CheckLimits(runners, "runners"));
  KILN_RETURN_IF_ERROR(CheckLimits(builders, "builders"));
  if (runners.most + builders.most == 0) {
    return InvalidArgument("a fleet has workers; say how many at most by --runners and --builders");
  }
  for (const auto* arguments :
       {&sbatch_arguments, &runner_sbatch_arguments, &builder_sbatch_arguments}) {
    for (const std::string& argument : *arguments) {
      KILN_RETURN_IF_ERROR(CheckSbatchArgument(argument));
    }
  }
  return ParseListenAddress(listen).status();
}

StatusOr<WorkerProgram> FleetFlags::ProgramOf(const Session& session) const {
  WorkerProgram made;
  made.tracker = tracker.empty() ? Variable("KILN_TRACKER") : tracker;
  if (made.tracker.empty()) {
    return InvalidArgument(
        "workers announce themselves to the farm's tracker; name it by --tracker HOST:PORT or "
        "KILN_TRACKER, as the nodes reach it");
  }
  KILN_RETURN_IF_ERROR(ParseHostPort(made.tracker).status());
  made.listen = listen;
  made.program = program;
  if (program.empty()) {
    KILN_ASSIGN_OR_RETURN(made.program, CurrentExecutable());
  }
  const bool own_keys = worker_keys.empty();
  KILN_ASSIGN_OR_RETURN(made.keys_folder,
                        Absolute(!own_keys                     ? worker_keys
                                 : session.keys_folder.empty() ? Variable("KILN_KEYS")
                                                               : session.keys_folder));
  KILN_ASSIGN_OR_RETURN(
      made.secret_file,
      Absolute(session.secret_file.empty() ? Variable("KILN_SECRET_FILE") : session.secret_file));
  if (!made.keys_folder.empty()) made.secret_file.clear();
  KILN_ASSIGN_OR_RETURN(made.log_folder, Absolute(log_folder));
  return made;
}

WorkerJob FleetFlags::RunnerJob() const {
  WorkerJob job = {.kind = v1::RUNNER,
                   .partition = partition,
                   .constraint = constraint,
                   .gres = gres,
                   .account = account,
                   .qos = qos,
                   .time = time,
                   .cpus = runner_cpus,
                   .sbatch_arguments = sbatch_arguments,
                   .worker_arguments = {"--device", device}};
  job.sbatch_arguments.insert(job.sbatch_arguments.end(), runner_sbatch_arguments.begin(),
                              runner_sbatch_arguments.end());
  job.worker_arguments.insert(job.worker_arguments.end(), runner_arguments.begin(),
                              runner_arguments.end());
  return job;
}

WorkerJob FleetFlags::BuilderJob() const {
  WorkerJob job = {.kind = v1::BUILDER,
                   .partition = builder_partition.empty() ? partition : builder_partition,
                   .account = account,
                   .qos = qos,
                   .time = time,
                   .cpus = builder_cpus,
                   .sbatch_arguments = sbatch_arguments,
                   .worker_arguments = {"--jobs", fmt::format("{}", builder_cpus)}};
  job.sbatch_arguments.insert(job.sbatch_arguments.end(), builder_sbatch_arguments.begin(),
                              builder_sbatch_arguments.end());
  job.worker_arguments.insert(job.worker_arguments.end(), builder_arguments.begin(),
                              builder_arguments.end());
  return job;
}

StatusOr<FleetOptions> FleetFlags::Complete(const Session& session) const {
  KILN_RETURN_IF_ERROR(Check());
  KILN_ASSIGN_OR_RETURN(const WorkerProgram worker, ProgramOf(session));
  FleetOptions options = {
      .name = name, .grow_after_s = grow_after_s, .shrink_after_s = shrink_after_s};
  const auto add = [&](const WorkerJob& job, const FleetLimits& limits, int slots) {
    if (limits.most == 0) return;
    FleetKindOptions kind = {.kind = job.kind,
                             .limits = limits,
                             .slots = slots,
                             .request = RequestOf(name, worker, job),
                             .log_file = LogFileOf(name, worker, job.kind)};
    if (job.kind == v1::RUNNER) kind.keys = {.named = keys_wanted, .device = device};
    options.kinds.push_back(std::move(kind));
  };
  add(RunnerJob(), runners, runner_slots);
  add(BuilderJob(), builders, builder_cpus);
  return options;
}

}  // namespace kiln::client
