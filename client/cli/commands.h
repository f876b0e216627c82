// The commands of `kiln`, free of their flags' syntax (command_line.h; job_flag_table.h and so on
// for each group). Each prints its result on stdout; the error it returns is for stderr.
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

// An exit status beyond "worked" and "failed": after Ctrl-C, as shells expect it.
inline constexpr int kInterruptedExit = 130;

// ---- jobs
struct JobFlags {
  WorkloadArguments arguments;    // of the first operator
  std::vector<std::string> more;  // text files beside it, a task each
  std::string tasks_path;         // instead: a file that lists the tasks (task_list.h)
  // Of operators that have others; a list may say its own. "": direct, of networks all, since they
  // have their weights.
  std::string variants;
  // Of a network; its name is that of the operator.
  NetworkArguments network;
  std::string layout_rewrite;                 // of a network: ParseLayoutRewrite; of others none
  bool include_simple = false;                // tasks of a network without sums, too
  std::vector<double> weights;                // of the tasks in order; what is missing is 1
  std::vector<std::string> input_ranges;      // "x=0.5:2"
  std::vector<std::string> parameters;        // of the policy: "eps_greedy=0.1"
  std::string schedule_template;              // a name or a file (template_source.h); "": none
  std::vector<std::string> model_parameters;  // of the cost model: "full_growth=0.2"
  std::string kernel_space;  // of a kernel (kernel_source.h), whose source is the operator
  std::string target;
  std::string target_note;  // that the user has not said it (compilation_target.h); "": he has
  std::string device;       // to measure on; "": any
  std::string name;
  int32_t priority = 0;
  v1::TuneOptions options;
  std::vector<std::string> faults;  // "3:null-store"
  FollowOptions follow;
};
StatusOr<v1::JobSpec> MakeJobSpec(const JobFlags& flags);
Status AddFaults(const std::vector<std::string>& faults, v1::TuneOptions& options);

struct ClusterFlags {
  std::string log_folder;
  int threads = 0;
  int build_jobs = 0;
};
// Through the scheduler of the session, or a cluster of its own. The exit status.
// `resume`: follow this unfinished job of the database instead of a new one ("last": the newest).
StatusOr<int> Tune(const JobFlags& flags, const ClusterFlags& cluster, const std::string& resume,
                   const Session& session, StopSignal& stop);
// The same for a job as it is.
StatusOr<int> TuneSpec(v1::JobSpec spec, const ClusterFlags& cluster, const FollowOptions& follow,
                       const Session& session, StopSignal& stop);
// A job whose results the scheduler fits the analytic model's constants of its device to.
struct CalibrateFlags {
  std::string target;
  std::string device;  // to measure on; "": any
  uint32_t trials = 390;
  uint64_t seed = 1;
  FollowOptions follow;
};
StatusOr<int> CalibrateCommand(const CalibrateFlags& flags, const ClusterFlags& cluster,
                               const Session& session, StopSignal& stop);
StatusOr<int> WatchCommand(const std::string& job_id, const FollowOptions& follow,
                           const Session& session, StopSignal& stop);
Status SubmitCommand(const JobFlags& flags, const Session& session);
// No limit: all.
Status JobsCommand(std::optional<uint32_t> limit, const Session& session);
Status JobCommand(const std::string& job_id, bool all_failures, const Session& session);
// Where the time of the job's trials went.
Status JobTimingCommand(const std::string& job_id, const Session& session);
Status CancelCommand(const std::string& job_id, const Session& session);
Status WorkersCommand(const std::string& tracker, const Session& session);

// ---- records
struct SubjectFlags {
  std::string what;  // workload key, job, record, operator or text file; "": the newest job
  WorkloadArguments arguments;  // --op, --args, ...
  std::string target;           // "": any
  std::optional<int> task;      // of a job; none: any
  int64_t record = 0;
  std::string kernel_space;  // of a kernel (kernel_source.h), whose source is `what`
};
Status BestCommand(const SubjectFlags& subject, const Session& session);
struct ShowFlags {
  std::string form;
  std::string steps_path;  // a file with steps instead of a record's; "none": the unscheduled loops
  std::vector<std::string> leave_out;  // passes of the compiler
};
Status ShowCommand(const SubjectFlags& subject, const ShowFlags& show, const Session& session);
// The sketches of what the subject is of: schedules with blanks.
Status SketchesCommand(const SubjectFlags& subject, const Session& session);
// As a CUDA file with a main; output "": stdout.
Status ExportKernelCommand(const SubjectFlags& subject, const std::string& output,
                           const Session& session);
// `trial`: "JOB/N". Files are kept in `keep` if given.
Status TrialCommand(const std::string& trial, const std::string& keep, const Session& session);

// A schedule that somebody wrote or changed (docs/schedules.md), tried on this machine's device: built,
// checked, timed, and kept as a record of the session's database. The exit status: 1 when the trial
// failed.
struct ScheduleTrialFlags {
  SubjectFlags
      subject;       // what it is a schedule of: an operator, a text file, or as `show` takes it
  std::string path;  // the schedule's text; "-": stdin
  v1::MeasureOptions measure;
  uint32_t build_timeout_ms = 0;
};
StatusOr<int> ScheduleTrialCommand(const ScheduleTrialFlags& flags, const Session& session);

Status StatsCommand(const Session& session);
struct CurveFlags {
  std::vector<std::string> jobs;
  std::optional<int> task;  // of each job; none: its total latency
  bool seconds = false;     // against time instead of trials
  std::string output;       // a picture, SVG; "": as text on stdout
};
Status CurveCommand(const CurveFlags& flags, const Session& session);

struct MeasureLogFlags {
  std::string path;               // "": the records of the session that the filter takes
  RecordFilterFlags filter;       // of the session's records; its target is the one below
  std::string target;             // "": that of the first line
  std::vector<std::string> bind;  // before: bindings.h
  v1::MeasureOptions measure;
  uint32_t build_timeout_ms = 60'000;
};
// Each record of the log, or of the session the best ones, on this machine's device. The exit status: 1 when one was not right.
StatusOr<int> MeasureLogCommand(const MeasureLogFlags& flags, const Session& session);

// ---- choices
// Which schedule a computation gets where nothing is searched (search/choice/context.h).
struct ChoiceFlags {
  SubjectFlags subject;
  std::string form;                 // print the schedule, too, as kiln show does; "": do not
  bool without_compatible = false;  // no record of another computation or another target
  bool without_sample = false;      // none that is chosen without measuring
  uint64_t seed = 1;                // of that
  // Instead: `subject.what` is a template of autotvm, these are its arguments as JSON; "": it is not.
  std::string template_args, template_kwargs = "{}";
};
Status QueryChoiceCommand(const ChoiceFlags& flags, const Session& session);
// What the subject is of gets its best record, or the schedule of the file (docs/schedules.md, "-":
// stdin; "": none), from now on.
Status PinCommand(const SubjectFlags& subject, const std::string& path, const Session& session);
// ... no longer.
Status UnpinCommand(const SubjectFlags& subject, const Session& session);
Status ListPinnedCommand(const Session& session);

// ---- tools
Status OpsCommand(const std::string& name, bool json);
Status CheckCommand(const WorkloadArguments& arguments, bool json);
struct TemplatesFlags {
  std::string what;               // a name or a file (template_source.h); "": list them
  WorkloadArguments arguments;    // its operator; of a shipped template the one that it is for
  std::string target;             // "": the default (compilation_target.h), here and below
  std::optional<int64_t> config;  // instead of the space: this point of it
  std::string space;  // of a kernel: the file that describes its parameters (kernel_source.h)
};
Status TemplatesCommand(const TemplatesFlags& flags, const Session& session);
struct TasksFlags {
  NetworkArguments network;
  std::string target;
  std::string variants = "all";
  std::string layout_rewrite;  // ParseLayoutRewrite
  bool include_simple = false;
  bool dags = false;       // the text of each task's computation, too
  std::string form;        // instead: "graph", the network's text
  std::string after = {};  // ... after the pass of this name; "": before all; "all"
};
// A file that runs, out of a network or one computation and the session's records of it.
struct CompileFlags {
  // Of anything: what it is called, and the type of its floats.
  NetworkArguments network;
  WorkloadArguments arguments;  // of an operator
  std::optional<int> task;      // of a job
  std::string output = "net.kiln";
  std::string target;  // "": the default; of a record its own
  std::string device;  // the model that it is for, for people; "": that of the records
  std::string variants = "all";
  std::string layout_rewrite;  // of a network: ParseLayoutRewrite
  bool strict = false;         // refuse a network of which a task was never tuned
  bool kernels = false;        // list them
  uint64_t seed = 1;
};
Status CompileCommand(const CompileFlags& flags, const Session& session);
// A schedule from the declaration alone.
struct ScheduleFlags {
  WorkloadArguments arguments;
  std::string target;
  std::string form = "schedule";  // as those of kiln show
  std::string output;             // a file that runs, as kiln compile writes it; "": none
  uint64_t seed = 1;
};
Status ScheduleCommand(const ScheduleFlags& flags, const Session& session);
struct RunFlags {
  std::string path;                          // of a compiled network
  std::vector<std::string> inputs, outputs;  // "x=in.npy"
  bool random = false;                       // of inputs that are not given
  uint64_t seed = 1;
  int threads = 0, gpu = 0;
};
Status RunNetworkCommand(const RunFlags& flags, bool json);
struct VerifyFlags {
  std::string path;                           // of a compiled network
  std::vector<std::string> inputs, expected;  // "x=in.npy"; inputs that are not given are random
  bool kernels = false;                       // each by itself, too
  v1::Tolerance tolerance;
  uint64_t seed = 1;
  int threads = 0, gpu = 0;
};
// The exit status: 1 when something is wrong.
StatusOr<int> VerifyCommand(const VerifyFlags& flags, bool json);
struct BenchFlags {
  std::string path;  // of a compiled network
  int repeat = 10;
  double min_repeat_ms = 100;  // of a reading
  bool profile = false;        // each kernel by itself, too
  int threads = 0, gpu = 0;
};
Status BenchCommand(const BenchFlags& flags, bool json);
// What there is to tune in a network.
Status TasksCommand(const TasksFlags& flags, const Session& session);
Status DoctorCommand(const Session& session);
Status VersionCommand(bool json);

}  // namespace kiln::client
