#include "client/jobs/job_spec.h"

#include <charconv>
#include <utility>

#include "base/process/user_name.h"
#include "base/text/counted.h"
#include "client/jobs/faults.h"
#include "client/jobs/kernel_source.h"
#include "client/jobs/parameters.h"
#include "client/jobs/task_list.h"
#include "client/jobs/template_source.h"
#include "compiler/dag/text.h"
#include "compiler/handwritten/kernel_text.h"
#include "compiler/target/target.h"
#include "search/policies/policy.h"

namespace kiln::client {
namespace {

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

StatusOr<std::vector<TaskListEntry>> LoadTasks(const JobDescription& job) {
  std::vector<TaskListEntry> tasks;
  if (!job.tasks_path.empty()) {
    if (!job.arguments.op.empty() || !job.weights.empty()) {
      return InvalidArgument("--tasks lists operators and weights: leave out '{}'{}",
                             job.arguments.op, job.weights.empty() ? "" : " and --weights");
    }
    if (!job.arguments.lets.empty())
      return InvalidArgument(
          "--let is for text files of the command line: leave it out of --tasks");
    KILN_ASSIGN_OR_RETURN(tasks, LoadTaskList(job.tasks_path));
    // A text file says its types itself.
    for (TaskListEntry& task : tasks) {
      if (IsTextFile(task.arguments.op)) continue;
      task.arguments.dtype = job.arguments.dtype;
      task.arguments.out_dtype = job.arguments.out_dtype;
      task.arguments.layout = job.arguments.layout;
    }
    return tasks;
  }
  tasks.push_back({.arguments = job.arguments});
  for (const std::string& more : job.more) {
    if (!IsTextFile(job.arguments.op) || !IsTextFile(more)) {
      return InvalidArgument(
          "found '{}' after '{}': several tasks are text files (*.te) or lines of a file given "
          "with "
          "--tasks; arguments of an operator come with --args",
          more, job.arguments.op);
    }
    tasks.push_back({.arguments = {.op = more, .lets = job.arguments.lets}});
  }
  if (job.weights.size() > tasks.size()) {
    return InvalidArgument("--weights has {} for {}", Counted(std::ssize(job.weights), "number"),
                           Counted(std::ssize(tasks), "task"));
  }
  for (size_t i = 0; i < job.weights.size(); ++i) tasks[i].weight = job.weights[i];
  return tasks;
}

// Returns the tasks of operators and text files. The caller of the program provides their inputs.
StatusOr<std::vector<JobTask>> ListedTasks(const JobDescription& job, bool gpu) {
  if (job.layout_rewrite == kRewritePreTransformed) {
    return InvalidArgument(
        "--layout-rewrite {} is for networks, whose weights are known: in a text file "
        "@packed_placeholders(w) before the sum that reads w does it",
        kRewritePreTransformed);
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<TaskListEntry> entries, LoadTasks(job));
  const std::string_view otherwise = job.variants.empty() ? kDirectVariants : job.variants;
  std::vector<JobTask> tasks;
  for (const TaskListEntry& entry : entries) {
    const std::string_view which = entry.variants.empty() ? otherwise : entry.variants;
    JobTask& task = tasks.emplace_back(
        JobTask{.weight = entry.weight, .network = entry.network, .variants = {}});
    KILN_ASSIGN_OR_RETURN(task.variants, LoadVariants(entry.arguments, which, gpu));
  }
  return tasks;
}

StatusOr<std::vector<JobTask>> NetworkJobTasks(const JobDescription& job,
                                               const target::Target& target) {
  if (!job.more.empty() || !job.tasks_path.empty() || !job.weights.empty()) {
    return InvalidArgument("{} is a network, which has tasks and weights of its own: leave out {}",
                           job.arguments.op,
                           !job.more.empty()         ? job.more[0]
                           : !job.tasks_path.empty() ? "--tasks"
                                                     : "--weights");
  }
  if (!job.arguments.lets.empty()) {
    return InvalidArgument("--let {}: {} is a network, expected a text file with a param",
                           job.arguments.lets[0], job.arguments.op);
  }
  NetworkArguments arguments = job.network;
  arguments.what = job.arguments.op;
  arguments.layout = job.arguments.layout;
  arguments.dtype = job.arguments.dtype;
  KILN_ASSIGN_OR_RETURN(const graph::Graph network, LoadNetwork(arguments));
  TaskSelection selection{.include_simple = job.include_simple};
  KILN_ASSIGN_OR_RETURN(selection.variants,
                        ParseVariants(job.variants.empty() ? kAllVariants : job.variants));
  KILN_ASSIGN_OR_RETURN(selection.pack_constants, ParseLayoutRewrite(job.layout_rewrite, target));
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
StatusOr<std::vector<JobTask>> KernelJobTasks(const JobDescription& job,
                                              const target::Target& target,
                                              v1::TuneOptions& options) {
  const WorkloadArguments& arguments = job.arguments;
  const bool alone = job.more.empty() && job.tasks_path.empty() && arguments.args.empty() &&
                     arguments.epilogue.empty() && job.schedule_template.empty();
  if (!alone) {
    return InvalidArgument(
        "{} is a kernel: what it computes is said by its --space, and it is the only task of its "
        "job",
        arguments.op);
  }
  KILN_ASSIGN_OR_RETURN(KernelSource kernel, LoadKernelSource(arguments.op, job.kernel_space));
  const bool for_gpu = kernel.text.language == handwritten::Language::kCuda;
  if (target.kind->runs_programs && for_gpu != target.is_gpu()) {
    return InvalidArgument("{} is for a {}, the target is {}", arguments.op,
                           for_gpu ? "GPU" : "CPU", target.kind->name);
  }
  options.set_kernel(handwritten::PrintKernelText(kernel.text));
  JobTask task;
  if (!job.weights.empty()) task.weight = job.weights[0];
  task.variants.push_back({.name = {}, .preparation = {}, .workload = std::move(kernel.workload)});
  return std::vector<JobTask>{std::move(task)};
}

// Returns the tasks of the job. Inputs have the ranges of the description. The content of the
// user's files goes into the options.
StatusOr<std::vector<JobTask>> LoadJobTasks(const JobDescription& job, const target::Target& target,
                                            v1::TuneOptions& options) {
  const bool is_kernel = handwritten::IsKernelFile(job.arguments.op);
  if (!is_kernel && !job.kernel_space.empty()) {
    return InvalidArgument(
        "--space is of a kernel of yours: expected its source, *.cu or *.c, found "
        "'{}'",
        job.arguments.op);
  }
  KILN_ASSIGN_OR_RETURN(std::vector<JobTask> tasks, is_kernel ? KernelJobTasks(job, target, options)
                                                    : IsNetwork(job.arguments.op)
                                                        ? NetworkJobTasks(job, target)
                                                        : ListedTasks(job, target.is_gpu()));
  std::vector<Workload*> workloads;
  for (JobTask& task : tasks) {
    for (WorkloadVariant& variant : task.variants) workloads.push_back(&variant.workload);
  }
  KILN_RETURN_IF_ERROR(GiveRanges(job.input_ranges, workloads));
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

// Returns the policy of a description that names none: the first one, or the first one that
// searches templates if there is a template or a kernel.
std::string DefaultPolicy(const JobDescription& job) {
  const bool has_template = !job.schedule_template.empty() || !job.kernel_space.empty();
  for (const search::PolicyKind* kind : search::Policies()) {
    if (kind->uses_template || !has_template) return std::string(kind->name);
  }
  return std::string(search::Policies().front()->name);
}

}  // namespace

StatusOr<v1::JobSpec> MakeJobSpec(const JobDescription& given) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(given.target));
  JobDescription job = given;
  if (job.options.policy().empty()) job.options.set_policy(DefaultPolicy(job));
  if (!job.schedule_template.empty()) {
    KILN_ASSIGN_OR_RETURN(TemplateSource source,
                          LoadTemplate(job.schedule_template, target.is_gpu()));
    if (job.arguments.op.empty() && job.tasks_path.empty()) job.arguments.op = source.op;
    job.options.set_schedule_template(std::move(source.text));
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<JobTask> tasks, LoadJobTasks(job, target, job.options));
  v1::JobSpec spec;
  spec.set_name(job.name);
  spec.set_user(UserName());
  spec.set_priority(job.priority);
  spec.set_device(job.device);
  *spec.mutable_options() = job.options;
  KILN_RETURN_IF_ERROR(AddFaults(job.faults, *spec.mutable_options()));
  for (const std::string& parameter : job.parameters) {
    KILN_RETURN_IF_ERROR(AddParameter(parameter, *spec.mutable_options()));
  }
  KILN_ASSIGN_OR_RETURN(const auto of_model, ParseParameters(job.model_parameters));
  spec.mutable_options()->mutable_model_parameters()->insert(of_model.begin(), of_model.end());
  for (const JobTask& task : tasks) AddTask(task, target, spec);
  return spec;
}

}  // namespace kiln::client
