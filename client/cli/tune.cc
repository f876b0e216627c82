// kiln tune, watch and submit run jobs from the command line to their end.
#include <fmt/ranges.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/counted.h"
#include "base/utf8.h"
#include "client/cli/commands.h"
#include "client/cli/compilation_target.h"
#include "client/cli/follow.h"
#include "client/cli/job_preview.h"
#include "client/cli/kernel_source.h"
#include "client/cli/model_source.h"
#include "client/cli/space_text.h"
#include "client/cli/task_list.h"
#include "client/cli/template_source.h"
#include "client/client.h"
#include "client/local_archive.h"
#include "client/local_cluster.h"
#include "client/local_devices.h"
#include "client/remote_models.h"
#include "client/this_machine.h"
#include "client/view/format.h"
#include "client/view/json.h"
#include "client/view/printable.h"
#include "client/view/summary.h"
#include "client/view/variant_groups.h"
#include "compiler/dag/text.h"
#include "compiler/target/target.h"
#include "costmodel/model_file.h"
#include "proto/builder.pb.h"
#include "search/templates/kernel_template.h"

namespace kiln::client {
namespace {

// Returns FAULT_NULL_STORE for "null-store".
StatusOr<v1::Fault> ParseFault(std::string_view name) {
  std::vector<std::string> known;
  for (int value = 1; v1::Fault_IsValid(value); ++value) {
    std::string word = v1::Fault_Name(static_cast<v1::Fault>(value)).substr(6);
    for (char& c : word) c = c == '_' ? '-' : static_cast<char>(std::tolower(c));
    if (word == name) return static_cast<v1::Fault>(value);
    known.push_back(word);
  }
  return InvalidArgument("unknown fault '{}', expected one of: {}", name, fmt::join(known, ", "));
}

Status AddFault(std::string_view text, v1::TuneOptions& options) {
  uint32_t trial = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), trial);
  if (error != std::errc() || end == text.data() + text.size() || *end != ':') {
    return InvalidArgument("--fault {}: expected TRIAL:FAULT, for instance 3:null-store", text);
  }
  KILN_ASSIGN_OR_RETURN(const v1::Fault fault, ParseFault({end + 1, text.data() + text.size()}));
  (*options.mutable_faults())[trial] = fault;
  return OkStatus();
}

std::string UserName() {
  const char* const variable = std::getenv("USER");
  if (variable != nullptr && *variable != '\0') return variable;
  // Containers and services do not set the variable.
  std::array<char, 4096> buffer;
  passwd entry, *found = nullptr;
  const bool known =
      getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
  return known ? found->pw_name : fmt::format("user {}", geteuid());
}

Status NothingFound(const v1::JobStatus& job, const Session& session) {
  return FailedPrecondition("no trial of job {} succeeded: {}; see {}", job.id(), ErrorCounts(job),
                            session.Command("jobs " + job.id()));
}

// Prints the end of a job, whatever it is. Returns the exit status.
StatusOr<int> Conclude(const Followed& followed, SchedulerClient& client, const Session& session,
                       bool quiet) {
  const v1::JobStatus& job = followed.job;
  v1::BestRequest request;
  request.set_job_id(job.id());
  KILN_ASSIGN_OR_RETURN(auto best, client.Best(request));
  if (session.json) {
    fmt::print("{}\n", EndEvent(job, best));
  } else {
    for (v1::Record& record : best) MakePrintable(record);
    fmt::print("{}{}", quiet ? "" : "\n", Summary(job, best, session, /*with_loops=*/!quiet));
    // The user of a calibration wants its fit.
    if (job.spec().options().calibrate() && job.state() == v1::SUCCEEDED)
      fmt::print("\n{}\n", Printable(job.message()));
  }
  std::fflush(stdout);
  if (job.state() == v1::FAILED) return Internal("job {} failed: {}", job.id(), job.message());
  if (followed.interrupted || job.state() == v1::CANCELLED) {
    fmt::print(
        stderr,
        "kiln: job {} was cancelled after {}; what was measured is kept, {} goes on with it\n",
        job.id(), Counted(job.trials_done(), "trial"),
        session.Command("tune --resume " + job.id()));
    return kInterruptedExit;
  }
  const bool known = std::any_of(job.tasks().begin(), job.tasks().end(),
                                 [](const auto& task) { return task.known_record_id() != 0; });
  // No candidate was left that earlier jobs had not tried.
  if (best.empty() && known && job.trials_done() == 0) return 0;
  if (best.empty()) return NothingFound(job, session);
  return 0;
}

// `followed` was interrupted and keeps running, since it does not belong to this process.
int LeftRunning(const Followed& followed, const std::string& job_id, const Session& session) {
  fmt::print(stderr, "kiln: job {} goes on ({} done); {} shows it, {} ends it\n", job_id,
             Counted(followed.job.trials_done(), "trial"), session.Command("watch " + job_id),
             session.Command("cancel " + job_id));
  return kInterruptedExit;
}

void PrintStart(const std::string& job_id, const v1::JobSpec& spec, const Session& session,
                const FollowOptions& follow, const std::string& place) {
  if (follow.quiet) return;
  if (session.json) {
    fmt::print("{}\n", StartEvent(job_id, spec, place));
  } else {
    int groups = 0;
    for (const v1::TaskSpec& task : spec.tasks()) groups += task.has_alternative_of() ? 0 : 1;
    std::string more = groups > 1 ? fmt::format(" and {}", Counted(groups - 1, "more task")) : "";
    if (groups > 1 && spec.tasks_size() > groups)
      more += fmt::format(" ({})", RowsText(groups, spec.tasks_size()));
    if (groups == 1) {
      for (int i = 1; i < spec.tasks_size(); ++i) more += " or " + spec.tasks(i).variant();
    }
    fmt::print("job {}: {}{}, {}, target {}, records in {}\n", job_id, spec.tasks(0).description(),
               more, LimitsText(spec.options()), ShortTarget(spec.tasks(0).target()), place);
  }
  std::fflush(stdout);
}

// Chooses the device of this machine that the job means.
Status ChooseDeviceHere(v1::JobSpec& spec) {
  if (spec.device().empty()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const std::string device, DeviceOfTarget(spec.tasks(0).target()));
  KILN_ASSIGN_OR_RETURN(const v1::ListReply there, LocalDevices(device));
  const std::string& target = spec.tasks(0).target();
  KILN_ASSIGN_OR_RETURN(
      *spec.mutable_device(),
      ChooseLocalDevice(spec.device(), target.substr(0, target.find(' ')), there));
  return OkStatus();
}

// The cluster serves one target, whose device its runner has.
LocalCluster::Options ClusterOptions(const v1::JobSpec& spec, const ClusterFlags& flags,
                                     const Session& session) {
  LocalCluster::Options options;
  options.db = session.db;
  options.device = DeviceOfTarget(spec.tasks(0).target()).value_or("cpu");
  // A job for one GPU gets a cluster with that GPU alone.
  if (spec.device().starts_with("GPU-")) options.device += ":" + spec.device();
  options.runner_threads = flags.threads;
  options.builder_jobs = flags.build_jobs;
  options.allow_faults = !spec.options().faults().empty();
  options.log_folder = flags.log_folder;
  return options;
}

// Returns the job to resume: the named one, or the newest job that was left unfinished or
// cancelled, as by Ctrl-C.
StatusOr<v1::JobStatus> JobToResume(const std::string& wanted, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive->Jobs(std::nullopt));
  for (const v1::JobStatus& job : jobs) {
    if (wanted == "last" ? !IsFinal(job.state()) || job.state() == v1::CANCELLED
                         : job.id() == wanted) {
      return job;
    }
  }
  if (wanted == "last") {
    return NotFound("{} has no job that was left unfinished or cancelled", archive->Name());
  }
  return NotFound("there is no job {} in {}", wanted, archive->Name());
}

// Prints the unfinished jobs of earlier runs. They are resumed only if the user asks for it.
void SayWhatIsLeftAlone(const std::string& own, SchedulerClient& client, const Session& session) {
  const auto jobs = client.Jobs(std::nullopt);
  if (!jobs.ok()) return;
  for (const v1::JobStatus& job : *jobs) {
    if (IsFinal(job.state()) || job.id() == own) continue;
    fmt::print(
        stderr,
        "kiln: job {} of an earlier run is unfinished ({} of {}) and is left alone; {} goes on "
        "with it, {} drops it\n",
        job.id(), job.trials_done(), Counted(job.spec().options().trials(), "trial"),
        session.Command("tune --resume " + job.id()), session.Command("cancel " + job.id()));
  }
}

// If the job names a model's file, the scheduler keeps the file, and the job names the kept model.
Status KeepModelOf(const SchedulerClient& client, v1::JobSpec& spec) {
  const std::string& model = spec.options().cost_model();
  if (model.empty()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const NamedOrFile source, ParseModelSource(model));
  if (source.bytes.empty()) return OkStatus();
  KILN_RETURN_IF_ERROR(Annotate(costmodel::ParseModelFile(source.bytes).status(), model));
  const std::string name = ContentName(source.bytes);
  KILN_RETURN_IF_ERROR(ModelsOf(client)->Put(name, source.bytes, /*replace=*/false).status());
  spec.mutable_options()->set_cost_model(name);
  return OkStatus();
}

// Returns the id of the job: a new one, or the resumed one.
StatusOr<std::string> Begin(SchedulerClient& client, const v1::JobSpec& spec,
                            const std::string& resumed_id) {
  if (resumed_id.empty()) {
    v1::JobSpec settled = spec;
    KILN_RETURN_IF_ERROR(KeepModelOf(client, settled));
    return client.Submit(settled);
  }
  KILN_RETURN_IF_ERROR(client.Resume(resumed_id));
  return resumed_id;
}

StatusOr<int> TuneThrough(SchedulerClient& client, const v1::JobSpec& spec,
                          const std::string& resumed_id, const FollowOptions& follow,
                          const Session& session, StopSignal& stop) {
  KILN_ASSIGN_OR_RETURN(const std::string job_id, Begin(client, spec, resumed_id));
  PrintStart(job_id, spec, session, follow, client.Name());
  KILN_ASSIGN_OR_RETURN(const Followed followed,
                        Follow(client, job_id, session, stop, nullptr, follow));
  if (followed.interrupted) return LeftRunning(followed, job_id, session);
  return Conclude(followed, client, session, follow.quiet);
}

StatusOr<int> TuneHere(v1::JobSpec spec, const std::string& resumed_id, const ClusterFlags& flags,
                       const FollowOptions& follow, const Session& session, StopSignal& stop) {
  KILN_RETURN_IF_ERROR(CheckDatabase(session.db));
  bool interrupted = false;
  auto cluster = LocalCluster::Start(ClusterOptions(spec, flags, session), [&] {
    return interrupted = interrupted || stop.WaitFor(absl::ZeroDuration()).has_value();
  });
  if (interrupted) return kInterruptedExit;
  KILN_RETURN_IF_ERROR(cluster.status());
  KILN_ASSIGN_OR_RETURN(const auto client, SchedulerClient::Connect((*cluster)->scheduler_address(),
                                                                    (*cluster)->secret()));
  KILN_ASSIGN_OR_RETURN(const std::string job_id, Begin(*client, spec, resumed_id));
  (*cluster)->GoOnWith(job_id);
  SayWhatIsLeftAlone(job_id, *client, session);
  PrintStart(job_id, spec, session, follow, session.db);
  KILN_ASSIGN_OR_RETURN(const Followed followed,
                        Follow(*client, job_id, session, stop, cluster->get(), follow));
  return Conclude(followed, *client, session, follow.quiet);
}

// Adds a parameter such as "eps_greedy=0.1".
Status AddParameter(std::string_view text, v1::TuneOptions& options) {
  const size_t equals = text.find('=');
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(
      text.data() + (equals == std::string_view::npos ? text.size() : equals + 1), end, value);
  if (equals == std::string_view::npos || equals == 0 || error != std::errc() || at != end) {
    return InvalidArgument("--parameter {}: expected NAME=NUMBER, for instance eps_greedy=0.1",
                           text);
  }
  (*options.mutable_policy_parameters())[std::string(text.substr(0, equals))] = value;
  return OkStatus();
}

// A task of a job with its algorithm variants.
struct JobTask {
  double weight = 1;
  std::string network = {};
  std::vector<WorkloadVariant> variants = {};
};

StatusOr<std::vector<TaskListEntry>> LoadTasks(const JobFlags& flags) {
  std::vector<TaskListEntry> tasks;
  if (!flags.tasks_path.empty()) {
    if (!flags.arguments.op.empty() || !flags.weights.empty()) {
      return InvalidArgument("--tasks lists operators and weights: leave out '{}'{}",
                             flags.arguments.op, flags.weights.empty() ? "" : " and --weights");
    }
    if (!flags.arguments.lets.empty())
      return InvalidArgument(
          "--let is for text files of the command line: leave it out of --tasks");
    return LoadTaskList(flags.tasks_path);
  }
  tasks.push_back({.arguments = flags.arguments});
  for (const std::string& more : flags.more) {
    if (!IsTextFile(flags.arguments.op) || !IsTextFile(more)) {
      return InvalidArgument(
          "found '{}' after '{}': several tasks are text files (*.te) or lines of a file given "
          "with "
          "--tasks; arguments of an operator come with --args",
          more, flags.arguments.op);
    }
    tasks.push_back({.arguments = {.op = more, .lets = flags.arguments.lets}});
  }
  if (flags.weights.size() > tasks.size()) {
    return InvalidArgument("--weights has {} for {}", Counted(std::ssize(flags.weights), "number"),
                           Counted(std::ssize(tasks), "task"));
  }
  for (size_t i = 0; i < flags.weights.size(); ++i) tasks[i].weight = flags.weights[i];
  return tasks;
}

// Prints the tasks instead of running a job without trials. Returns the exit status.
StatusOr<int> ShowTasks(const v1::JobSpec& spec, const Session& session) {
  if (const std::string& kernel = spec.options().kernel(); !kernel.empty()) {
    KILN_ASSIGN_OR_RETURN(const search::TemplatePtr made, search::KernelTemplate::Parse(kernel));
    KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(spec.tasks(0).dag()));
    KILN_ASSIGN_OR_RETURN(const search::ConfigSpace space, made->Space(dag));
    fmt::print("{}", SpaceText(space, session.json));
    return 0;
  }
  KILN_ASSIGN_OR_RETURN(const std::string text, PreviewJob(spec, session.json));
  fmt::print("{}", text);
  return 0;
}

// If the user has chosen no variants, prints that others exist.
void PrintOtherVariants(const JobFlags& flags, const Session& session) {
  if (session.json || !flags.variants.empty() || !flags.tasks_path.empty() ||
      IsNetwork(flags.arguments.op))
    return;
  const auto target = target::ParseTarget(flags.target);
  const auto variants =
      LoadVariants(flags.arguments, kAllVariants, target.ok() && target->is_gpu());
  if (!variants.ok() || variants->size() < 2) return;
  fmt::print(
      "{} has another variant, {}, for weights that are prepared before: --variants all tunes "
      "both\n",
      flags.arguments.op, variants->back().name);
}

}  // namespace

Status AddFaults(const std::vector<std::string>& faults, v1::TuneOptions& options) {
  for (const std::string& fault : faults) KILN_RETURN_IF_ERROR(AddFault(fault, options));
  return OkStatus();
}

namespace {

// Returns the tasks of operators and text files. The caller of the program provides their inputs.
StatusOr<std::vector<JobTask>> ListedTasks(const JobFlags& flags, bool gpu) {
  if (flags.layout_rewrite == kRewritePreTransformed) {
    return InvalidArgument(
        "--layout-rewrite {} is for networks, whose weights are known: in a text file "
        "@packed_placeholders(w) before the sum that reads w does it",
        kRewritePreTransformed);
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<TaskListEntry> entries, LoadTasks(flags));
  const std::string_view otherwise = flags.variants.empty() ? kDirectVariants : flags.variants;
  std::vector<JobTask> tasks;
  for (const TaskListEntry& entry : entries) {
    const std::string_view which = entry.variants.empty() ? otherwise : entry.variants;
    JobTask& task = tasks.emplace_back(
        JobTask{.weight = entry.weight, .network = entry.network, .variants = {}});
    KILN_ASSIGN_OR_RETURN(task.variants, LoadVariants(entry.arguments, which, gpu));
  }
  return tasks;
}

StatusOr<std::vector<JobTask>> NetworkJobTasks(const JobFlags& flags,
                                               const target::Target& target) {
  if (!flags.more.empty() || !flags.tasks_path.empty() || !flags.weights.empty()) {
    return InvalidArgument("{} is a network, which has tasks and weights of its own: leave out {}",
                           flags.arguments.op,
                           !flags.more.empty()         ? flags.more[0]
                           : !flags.tasks_path.empty() ? "--tasks"
                                                       : "--weights");
  }
  if (!flags.arguments.lets.empty()) {
    return InvalidArgument("--let {}: {} is a network, expected a text file with a param",
                           flags.arguments.lets[0], flags.arguments.op);
  }
  NetworkArguments arguments = flags.network;
  arguments.what = flags.arguments.op;
  arguments.layout = flags.arguments.layout;
  arguments.dtype = flags.arguments.dtype;
  KILN_ASSIGN_OR_RETURN(const graph::Graph network, LoadNetwork(arguments));
  TaskSelection selection{.include_simple = flags.include_simple};
  KILN_ASSIGN_OR_RETURN(selection.variants,
                        ParseVariants(flags.variants.empty() ? kAllVariants : flags.variants));
  KILN_ASSIGN_OR_RETURN(selection.pack_constants, ParseLayoutRewrite(flags.layout_rewrite, target));
  KILN_ASSIGN_OR_RETURN(const std::vector<NetworkTuneTask> found,
                        TuneTasks(network, target, selection));
  if (found.empty()) {
    return InvalidArgument(
        "{} has nothing to tune but elementwise functions and moves: --include-simple-tasks tunes "
        "those",
        arguments.what);
  }
  std::vector<JobTask> tasks;
  for (const NetworkTuneTask& task : found) {
    JobTask& made = tasks.emplace_back(
        JobTask{.weight = task.weight, .network = arguments.what, .variants = {}});
    for (const TaskVariant& variant : task.variants) {
      made.variants.push_back(
          {.name = variant.name,
           .preparation = variant.preparation,
           .workload = {.dag = variant.dag,
                        .description = variant.name.empty() || variant.name == kDirectVariants
                                           ? task.description
                                           : task.description + ", " + variant.name}});
    }
  }
  return tasks;
}

// Returns the task of a hand-written kernel. The kernel's text becomes an option.
StatusOr<std::vector<JobTask>> KernelJobTasks(const JobFlags& flags, const target::Target& target,
                                              v1::TuneOptions& options) {
  const WorkloadArguments& arguments = flags.arguments;
  const bool alone = flags.more.empty() && flags.tasks_path.empty() && arguments.args.empty() &&
                     arguments.epilogue.empty() && flags.schedule_template.empty();
  if (!alone) {
    return InvalidArgument(
        "{} is a kernel: what it computes is said by its --space, and it is the only task of its "
        "job",
        arguments.op);
  }
  KILN_ASSIGN_OR_RETURN(KernelSource kernel, LoadKernelSource(arguments.op, flags.kernel_space));
  const bool for_gpu = kernel.text.language == handwritten::Language::kCuda;
  if (target.kind->runs_programs && for_gpu != target.is_gpu()) {
    return InvalidArgument("{} is for a {}, the target is {}", arguments.op,
                           for_gpu ? "GPU" : "CPU", target.kind->name);
  }
  options.set_kernel(handwritten::PrintKernelText(kernel.text));
  JobTask task;
  if (!flags.weights.empty()) task.weight = flags.weights[0];
  task.variants.push_back({.name = {}, .preparation = {}, .workload = std::move(kernel.workload)});
  return std::vector<JobTask>{std::move(task)};
}

// Returns the tasks of the job. Inputs have the ranges of the flags. The content of the user's
// files goes into the options.
StatusOr<std::vector<JobTask>> LoadJobTasks(const JobFlags& flags, const target::Target& target,
                                            v1::TuneOptions& options) {
  const bool is_kernel = handwritten::IsKernelFile(flags.arguments.op);
  if (!is_kernel && !flags.kernel_space.empty()) {
    return InvalidArgument(
        "--space is of a kernel of yours: expected its source, *.cu or *.c, found "
        "'{}'",
        flags.arguments.op);
  }
  KILN_ASSIGN_OR_RETURN(std::vector<JobTask> tasks,
                        is_kernel                       ? KernelJobTasks(flags, target, options)
                        : IsNetwork(flags.arguments.op) ? NetworkJobTasks(flags, target)
                                                        : ListedTasks(flags, target.is_gpu()));
  std::vector<Workload*> workloads;
  for (JobTask& task : tasks) {
    for (WorkloadVariant& variant : task.variants) workloads.push_back(&variant.workload);
  }
  KILN_RETURN_IF_ERROR(GiveRanges(flags.input_ranges, workloads));
  return tasks;
}

void AddTask(const JobTask& given, const target::Target& target, v1::JobSpec& spec) {
  const auto first = static_cast<uint32_t>(spec.tasks_size());
  for (const WorkloadVariant& variant : given.variants) {
    v1::TaskSpec& task = *spec.add_tasks();
    if (&variant != &given.variants[0]) task.set_alternative_of(first);
    task.set_dag(dag::PrintDag(*variant.workload.dag, variant.workload.ranges));
    task.set_target(target::PrintTarget(target));
    task.set_weight(given.weight);
    task.set_description(variant.workload.description);
    task.set_variant(variant.name);
    task.set_preparation(variant.preparation);
    task.set_network(given.network);
  }
}

}  // namespace

StatusOr<v1::JobSpec> MakeJobSpec(const JobFlags& given) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(given.target));
  JobFlags flags = given;
  if (!flags.schedule_template.empty()) {
    KILN_ASSIGN_OR_RETURN(TemplateSource source,
                          LoadTemplate(flags.schedule_template, target.is_gpu()));
    if (flags.arguments.op.empty() && flags.tasks_path.empty()) flags.arguments.op = source.op;
    flags.options.set_schedule_template(std::move(source.text));
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<JobTask> tasks,
                        LoadJobTasks(flags, target, flags.options));
  v1::JobSpec spec;
  spec.set_name(flags.name);
  spec.set_user(UserName());
  spec.set_priority(flags.priority);
  spec.set_device(flags.device);
  *spec.mutable_options() = flags.options;
  KILN_RETURN_IF_ERROR(AddFaults(flags.faults, *spec.mutable_options()));
  for (const std::string& parameter : flags.parameters) {
    KILN_RETURN_IF_ERROR(AddParameter(parameter, *spec.mutable_options()));
  }
  KILN_ASSIGN_OR_RETURN(const auto of_model, ParseParameters(flags.model_parameters));
  spec.mutable_options()->mutable_model_parameters()->insert(of_model.begin(), of_model.end());
  for (const JobTask& task : tasks) AddTask(task, target, spec);
  return spec;
}

StatusOr<int> Tune(const JobFlags& flags, const ClusterFlags& cluster, const std::string& resume,
                   const Session& session, StopSignal& stop) {
  if (!resume.empty()) {
    KILN_ASSIGN_OR_RETURN(const v1::JobStatus job, JobToResume(resume, session));
    if (job.spec().tasks().empty()) {
      return FailedPrecondition(
          "job {} has no tasks to go on with: it is one of imported records, or what was asked for "
          "is damaged; expected a job that kiln jobs lists with a task",
          OneLine(job.id()));
    }
    if (session.scheduler.empty()) {
      return TuneHere(job.spec(), job.id(), cluster, flags.follow, session, stop);
    }
    KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
    return TuneThrough(*client, job.spec(), job.id(), flags.follow, session, stop);
  }
  KILN_ASSIGN_OR_RETURN(v1::JobSpec spec, MakeJobSpec(flags));
  SayTarget(flags.target_note, session);
  if (spec.options().trials() == 0) return ShowTasks(spec, session);
  if (!flags.follow.quiet) PrintOtherVariants(flags, session);
  return TuneSpec(std::move(spec), cluster, flags.follow, session, stop);
}

StatusOr<int> TuneSpec(v1::JobSpec spec, const ClusterFlags& cluster, const FollowOptions& follow,
                       const Session& session, StopSignal& stop) {
  if (session.scheduler.empty()) {
    KILN_RETURN_IF_ERROR(NameThisCpu(spec));
    KILN_RETURN_IF_ERROR(ChooseDeviceHere(spec));
    return TuneHere(std::move(spec), "", cluster, follow, session, stop);
  }
  KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
  return TuneThrough(*client, spec, "", follow, session, stop);
}

StatusOr<int> WatchCommand(const std::string& job_id, const FollowOptions& follow,
                           const Session& session, StopSignal& stop) {
  if (session.scheduler.empty()) {
    return InvalidArgument(
        "watch needs a scheduler: give --scheduler HOST:PORT or set KILN_SCHEDULER; {} reads the "
        "database",
        session.Command("jobs " + job_id));
  }
  KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
  KILN_RETURN_IF_ERROR(client->Job(job_id).status());
  KILN_ASSIGN_OR_RETURN(const Followed followed,
                        Follow(*client, job_id, session, stop, nullptr, follow));
  if (followed.interrupted) return LeftRunning(followed, job_id, session);
  return Conclude(followed, *client, session, follow.quiet);
}

Status SubmitCommand(const JobFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(v1::JobSpec spec, MakeJobSpec(flags));
  SayTarget(flags.target_note, session);
  if (spec.options().trials() == 0) return ShowTasks(spec, session).status();
  KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
  KILN_RETURN_IF_ERROR(KeepModelOf(*client, spec));
  KILN_ASSIGN_OR_RETURN(const std::string job_id, client->Submit(spec));
  if (session.json) {
    fmt::print("{}\n", StartEvent(job_id, spec, client->Name()));
  } else {
    fmt::print("{}\n", job_id);
  }
  return OkStatus();
}

}  // namespace kiln::client
