// The commands of `kiln` without the syntax of their flags (command_line.h; job_flag_table.h and so
// on for each group). Each command prints its result on stdout; the caller prints a returned error
// on stderr.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/stop_signal.h"
#include "client/cli/follow.h"
#include "client/cli/record_list.h"
#include "client/cli/workload_source.h"
#include "client/network.h"
#include "client/session.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// Exit status after Ctrl-C, as shells expect it.
inline constexpr int kInterruptedExit = 130;

// ---- jobs
struct JobFlags {
  // Arguments of the first operator.
  WorkloadArguments arguments;
  // Further text files, one task each.
  std::vector<std::string> more;
  // A file that lists the tasks (task_list.h), instead of operators.
  std::string tasks_path;
  // Algorithm variants of operators that have several; a line of a task list may have its own. "":
  // only direct for operators, and all for networks, whose weights are known.
  std::string variants;
  // Options of a network. Its name is given as the operator.
  NetworkArguments network;
  // Layout rewrite of a network (ParseLayoutRewrite). Operators have none.
  std::string layout_rewrite;
  // True: tasks of a network without sums are included.
  bool include_simple = false;
  // Weights of the tasks in order; a missing weight is 1.
  std::vector<double> weights;
  // "x=0.5:2".
  std::vector<std::string> input_ranges;
  // Parameters of the policy: "eps_greedy=0.1".
  std::vector<std::string> parameters;
  // Name of a template, or a file (template_source.h); "": none.
  std::string schedule_template;
  // Parameters of the cost model: "full_growth=0.2".
  std::vector<std::string> model_parameters;
  // Space of a kernel (kernel_source.h). The operator names the kernel's source.
  std::string kernel_space;
  std::string target;
  // Tells the user that the target is the default (compilation_target.h); "": the user gave it.
  std::string target_note;
  // Device that measures; "": any.
  std::string device;
  std::string name;
  int32_t priority = 0;
  v1::TuneOptions options;
  // "3:null-store".
  std::vector<std::string> faults;
  FollowOptions follow;
};
StatusOr<v1::JobSpec> MakeJobSpec(const JobFlags& flags);
Status AddFaults(const std::vector<std::string>& faults, v1::TuneOptions& options);

struct ClusterFlags {
  std::string log_folder;
  int threads = 0;
  int build_jobs = 0;
};
// Tunes through the scheduler of the session, or on a cluster of its own. Returns the exit status.
// `resume`: follows this unfinished job of the database instead of a new job ("last": the newest).
StatusOr<int> Tune(const JobFlags& flags, const ClusterFlags& cluster, const std::string& resume,
                   const Session& session, StopSignal& stop);
// Does the same for a job whose specification is complete.
StatusOr<int> TuneSpec(v1::JobSpec spec, const ClusterFlags& cluster, const FollowOptions& follow,
                       const Session& session, StopSignal& stop);
// A job from whose results the scheduler fits the analytic model's constants of its device.
struct CalibrateFlags {
  std::string target;
  // Device that measures; "": any.
  std::string device;
  uint32_t trials = 390;
  uint64_t seed = 1;
  FollowOptions follow;
};
StatusOr<int> CalibrateCommand(const CalibrateFlags& flags, const ClusterFlags& cluster,
                               const Session& session, StopSignal& stop);
StatusOr<int> WatchCommand(const std::string& job_id, const FollowOptions& follow,
                           const Session& session, StopSignal& stop);
Status SubmitCommand(const JobFlags& flags, const Session& session);
// No limit: all jobs.
Status JobsCommand(std::optional<uint32_t> limit, const Session& session);
Status JobCommand(const std::string& job_id, bool all_failures, const Session& session);
// Prints how the time of the job's trials was spent.
Status JobTimingCommand(const std::string& job_id, const Session& session);
Status CancelCommand(const std::string& job_id, const Session& session);
Status WorkersCommand(const std::string& tracker, const Session& session);

// ---- records
struct SubjectFlags {
  // A workload key, job, record, operator or text file; "": the newest job.
  std::string what;
  // --op, --args, ...
  WorkloadArguments arguments;
  // "": any target.
  std::string target;
  // Task of a job; none: any.
  std::optional<int> task;
  int64_t record = 0;
  // Space of a kernel (kernel_source.h), whose source is `what`.
  std::string kernel_space;
};
Status BestCommand(const SubjectFlags& subject, const Session& session);
struct ShowFlags {
  std::string form;
  // A file with steps instead of a record's; "none": the unscheduled loops.
  std::string steps_path;
  // Compiler passes that do not run.
  std::vector<std::string> leave_out;
};
Status ShowCommand(const SubjectFlags& subject, const ShowFlags& show, const Session& session);
// Prints the sketches of the subject's computation: schedules with blanks.
Status SketchesCommand(const SubjectFlags& subject, const Session& session);
// Writes the kernel as a CUDA file with a main; output "": stdout.
Status ExportKernelCommand(const SubjectFlags& subject, const std::string& output,
                           const Session& session);
// `trial` is "JOB/N". Files are kept in `keep` if it is given.
Status TrialCommand(const std::string& trial, const std::string& keep, const Session& session);

// Tries a schedule that somebody wrote or changed (docs/schedules.md) on this machine's device. It
// is built, checked, timed, and kept as a record of the session's database. Returns the exit
// status: 1 if the trial failed.
struct ScheduleTrialFlags {
  // The schedule's computation: an operator, a text file, or a subject of `show`.
  SubjectFlags subject;
  // Path of the schedule's text; "-": stdin.
  std::string path;
  v1::MeasureOptions measure;
  uint32_t build_timeout_ms = 0;
};
StatusOr<int> ScheduleTrialCommand(const ScheduleTrialFlags& flags, const Session& session);

Status StatsCommand(const Session& session);
struct CurveFlags {
  std::vector<std::string> jobs;
  // Task of each job; none: the job's total latency.
  std::optional<int> task;
  // True: the axis shows time instead of trials.
  bool seconds = false;
  // File for a picture in SVG; "": text on stdout.
  std::string output;
};
Status CurveCommand(const CurveFlags& flags, const Session& session);

struct MeasureLogFlags {
  // Path of the log; "": the records of the session that match the filter.
  std::string path;
  // Filters the session's records. Its target is the one below.
  RecordFilterFlags filter;
  // "": the target of the first line.
  std::string target;
  // Bindings that are made before (bindings.h).
  std::vector<std::string> bind;
  v1::MeasureOptions measure;
  uint32_t build_timeout_ms = 60'000;
};
// Measures each record of the log, or the session's best records, on this machine's device. Returns
// the exit status: 1 if a record was not right.
StatusOr<int> MeasureLogCommand(const MeasureLogFlags& flags, const Session& session);

// ---- choices
// Options of the schedule that a computation gets if nothing is searched (search/choice/context.h).
struct ChoiceFlags {
  SubjectFlags subject;
  // Form in which the schedule is printed too, as for kiln show; "": it is not printed.
  std::string form;
  // True: no record of another computation or another target is used.
  bool without_compatible = false;
  // True: no schedule that is chosen without measuring is used.
  bool without_sample = false;
  // Seed of that choice.
  uint64_t seed = 1;
  // Arguments of a template of autotvm as JSON; then `subject.what` names the template. "": it is
  // no template.
  std::string template_args, template_kwargs = "{}";
};
Status QueryChoiceCommand(const ChoiceFlags& flags, const Session& session);
// Pins a schedule: from now on the subject's computation gets the subject's best record, or the
// schedule of the file `path` (docs/schedules.md, "-": stdin; "": no file).
Status PinCommand(const SubjectFlags& subject, const std::string& path, const Session& session);
// Removes the pinned schedules of the subject's computations.
Status UnpinCommand(const SubjectFlags& subject, const Session& session);
Status ListPinnedCommand(const Session& session);

// ---- tools
Status OpsCommand(const std::string& name, bool json);
Status CheckCommand(const WorkloadArguments& arguments, bool json);
struct TemplatesFlags {
  // Name of a template or a file (template_source.h); "": list the templates.
  std::string what;
  // Operator for the template. A shipped template has its own.
  WorkloadArguments arguments;
  // "": the default (compilation_target.h), here and below.
  std::string target;
  // Index of a point of the space, which is shown instead of the space.
  std::optional<int64_t> config;
  // File that describes the parameters of a kernel (kernel_source.h).
  std::string space;
};
Status TemplatesCommand(const TemplatesFlags& flags, const Session& session);
struct TasksFlags {
  NetworkArguments network;
  std::string target;
  std::string variants = "all";
  // See ParseLayoutRewrite.
  std::string layout_rewrite;
  bool include_simple = false;
  // True: the text of each task's computation is printed too.
  bool dags = false;
  // "graph": the network's text is printed instead of the tasks.
  std::string form;
  // The text after the pass of this name; "": before all passes; "all": after all.
  std::string after = {};
};
// Makes a file that runs, from a network or one computation and the session's records of it.
struct CompileFlags {
  // Name of anything that is compiled, and type of its floats.
  NetworkArguments network;
  // Arguments of an operator.
  WorkloadArguments arguments;
  // Task of a job.
  std::optional<int> task;
  std::string output = "net.kiln";
  // "": the default, or the target of the record.
  std::string target;
  // The device model, for people; "": that of the records.
  std::string device;
  std::string variants = "all";
  // Layout rewrite of a network (ParseLayoutRewrite).
  std::string layout_rewrite;
  // True: a network with a task that was never tuned is refused.
  bool strict = false;
  // True: the kernels are listed.
  bool kernels = false;
  uint64_t seed = 1;
};
Status CompileCommand(const CompileFlags& flags, const Session& session);
// Chooses a schedule by the declaration alone, without records.
struct ScheduleFlags {
  WorkloadArguments arguments;
  std::string target;
  // A form of kiln show.
  std::string form = "schedule";
  // A file that runs, as kiln compile writes it; "": none.
  std::string output;
  uint64_t seed = 1;
};
Status ScheduleCommand(const ScheduleFlags& flags, const Session& session);
struct RunFlags {
  // Path of a compiled network.
  std::string path;
  // "x=in.npy".
  std::vector<std::string> inputs, outputs;
  // True: inputs that are not given are random.
  bool random = false;
  uint64_t seed = 1;
  int threads = 0, gpu = 0;
};
Status RunNetworkCommand(const RunFlags& flags, bool json);
struct VerifyFlags {
  // Path of a compiled network.
  std::string path;
  // "x=in.npy". Inputs that are not given are random.
  std::vector<std::string> inputs, expected;
  // True: each kernel is checked by itself as well.
  bool kernels = false;
  v1::Tolerance tolerance;
  uint64_t seed = 1;
  int threads = 0, gpu = 0;
};
// Returns the exit status: 1 if something is wrong.
StatusOr<int> VerifyCommand(const VerifyFlags& flags, bool json);
struct BenchFlags {
  // Path of a compiled network.
  std::string path;
  int repeat = 10;
  // Least time of a reading.
  double min_repeat_ms = 100;
  // True: each kernel is timed by itself as well.
  bool profile = false;
  int threads = 0, gpu = 0;
};
Status BenchCommand(const BenchFlags& flags, bool json);
// Lists the tasks of a network.
Status TasksCommand(const TasksFlags& flags, const Session& session);
Status DoctorCommand(const Session& session);
Status VersionCommand(bool json);

}  // namespace kiln::client
