#include "client/command_line.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <system_error>
#include <vector>

#include "base/errno_status.h"
#include "base/grpc_server.h"
#include "base/log.h"
#include "client/commands.h"
#include "client/render.h"
#include "client/wording.h"
#include "compiler/dag/ops/epilogue.h"
#include "search/objective.h"

namespace kiln::client {
namespace {

constexpr uint32_t kMostTrials = 10'000'000;
constexpr uint32_t kLongestMs = 3'600'000;
constexpr uint32_t kMostCalls = 1'000'000;
constexpr uint32_t kIdleMs = 50;
constexpr int kUsageExit = 2;

constexpr char kFooter[] =
    "Start here:  kiln tune matmul --args 512,512,512\n"
    "             kiln ops            the operators and their arguments\n"
    "Environment: KILN_SCHEDULER, KILN_TRACKER (HOST:PORT), KILN_DB stand for the flags.";

// What the flags are read into; the commands take parts of it.
struct Flags {
  Session session;
  bool db_given = false, scheduler_given = false;
  WorkloadWords words;
  JobFlags job;
  ClusterFlags cluster;
  std::vector<std::string> ops;
  uint32_t trials = 64, number = 3, repeat = 1, min_repeat_ms = 30, cooldown_ms = 0;
  uint32_t timeout_ms = 10'000, build_timeout_ms = 15'000, early_stopping = 0;
  uint32_t total_early_stopping = 0, trials_per_round = 0;
  int finalists = 8;
  std::string task_strategy = "gradient";
  std::string objective = "weighted-sum";
  double latency_target_ms = 0;
  bool lock_step = false;
  bool no_warm_start = false;
  bool sketches = false;
  std::optional<uint32_t> idle_ms;
  uint64_t seed = 1;
  bool flush_cache = false;
  std::string policy = "sketch.xgb";
  std::string resume;
  std::string job_id;
  uint32_t limit = 20;
  bool all = false, timing = false;
  SubjectFlags subject;
  std::string form = "schedule", steps;
  std::string trial, keep;
  ExportFlags exported;
  std::string path, output;
  ConformanceFlags conformance;
  MeasureLogFlags measured_log;
  SelfTestFlags selftest;
  std::string name;
  std::string tracker = "127.0.0.1:9190";
};

using Run = std::function<StatusOr<int>()>;

// A command that gives nothing but a status.
Run Plain(std::function<Status()> run) {
  return [run = std::move(run)]() -> StatusOr<int> {
    InitGrpc();
    KILN_RETURN_IF_ERROR(run());
    return 0;
  };
}

class CommandLine {
 public:
  explicit CommandLine(std::string program)
      : app_(
            "Kiln tunes tensor operators: it searches the schedules of a computation for the "
            "fastest correct program and keeps every measurement.",
            "kiln") {
    flags_.session.program = std::move(program);
    app_.require_subcommand(1);
    app_.footer(kFooter);
    AddJobCommands();
    AddRecordCommands();
    AddTools();
    AddDaemons();
  }

  int Main(int argc, char** argv) {
    const std::vector<std::string> names = CommandNames();
    const std::string_view word = argc > 1 ? argv[1] : "-";
    if (!word.starts_with('-') && std::find(names.begin(), names.end(), word) == names.end()) {
      return UnknownCommand(std::string(word));
    }
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& success) {
      return app_.exit(success);  // help
    } catch (const CLI::ParseError& error) {
      return WrongUsage(error);
    }
    ReadEnvironment();
    const StatusOr<int> exit_status = GoUnlessOutputEnds();
    if (exit_status.ok()) return *exit_status;
    std::fflush(stdout);
    fmt::print(stderr, "kiln: {}\n", Message(exit_status.status()));
    return 1;
  }

 private:
  // fmt throws when output cannot be written. Whoever has read enough (`kiln ... | head`) has seen
  // no error; what was started here has been stopped on the way.
  StatusOr<int> GoUnlessOutputEnds() {
    constexpr int kBrokenPipeExit = 128 + SIGPIPE;
    int error = 0;
    try {
      StatusOr<int> exit_status = Go();
      if (std::fflush(stdout) == 0 || !exit_status.ok()) return exit_status;
      error = errno;
    } catch (const std::system_error& thrown) {
      error = thrown.code().value();
    }
    if (error == EPIPE) return kBrokenPipeExit;
    return Unavailable("cannot write the output: {}", ErrnoText(error));
  }

  StatusOr<int> Go() {
    if (flags_.db_given && flags_.scheduler_given) {
      return InvalidArgument(
          "--db and --scheduler exclude each other: a scheduler has its own "
          "database");
    }
    if (run_ == nullptr) return InvalidArgument("incomplete command; see kiln --help");
    return run_();
  }

  std::vector<std::string> CommandNames() const {
    std::vector<std::string> names;
    for (const CLI::App* command : app_.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(command->get_name());
    }
    return names;
  }

  int UnknownCommand(const std::string& word) const {
    const std::vector<std::string> names = CommandNames();
    const std::vector<std::string> closest = dag::ClosestNames(word, names);
    const std::string guess = closest.empty()
                                  ? std::string()
                                  : fmt::format(", did you mean {}?", fmt::join(closest, " or "));
    fmt::print(stderr, "kiln: there is no command '{}'{}{} commands: {}; see kiln --help\n", word,
               guess, guess.empty() ? ";" : "", fmt::join(names, ", "));
    return kUsageExit;
  }

  int WrongUsage(const CLI::ParseError& error) {
    std::string help = "kiln";
    const CLI::App* at = &app_;
    while (!at->get_subcommands().empty()) {
      at = at->get_subcommands()[0];
      help += " " + at->get_name();
    }
    std::string message = FirstLine(error.what());
    while (message.ends_with('.')) message.pop_back();
    fmt::print(stderr, "kiln: {}; see {} --help\n", message, help);
    return kUsageExit;
  }

  // A flag wins over the environment, and of the environment the scheduler over the database.
  void ReadEnvironment() {
    auto read = [](const char* name, bool given, std::string& value) {
      const char* text = std::getenv(name);
      if (!given && text != nullptr && *text != '\0') value = text;
    };
    read("KILN_DB", flags_.db_given, flags_.session.db);
    read("KILN_SCHEDULER", flags_.db_given || flags_.scheduler_given, flags_.session.scheduler);
    read("KILN_TRACKER", tracker_given_, flags_.tracker);
  }

  CLI::App* Command(CLI::App& parent, const std::string& name, const std::string& what, Run run) {
    CLI::App* command = parent.add_subcommand(name, what);
    command->callback([this, run = std::move(run)] { run_ = run; });
    return command;
  }

  void AddPlace(CLI::App& c) {
    c.add_option_function<std::string>(
         "--scheduler",
         [this](const std::string& value) {
           flags_.session.scheduler = value;
           flags_.scheduler_given = true;
         },
         "HOST:PORT of the scheduler to use")
        ->type_name("HOST:PORT");
    c.add_option_function<std::string>(
         "--db",
         [this](const std::string& value) {
           flags_.session.db = value;
           flags_.db_given = true;
         },
         "without a scheduler: the database file of jobs and records [kiln.db]")
        ->type_name("FILE");
    AddJson(c);
  }

  void AddJson(CLI::App& c) {
    c.add_flag("--json", flags_.session.json, "print JSON, one value a line");
  }

  void AddWords(CLI::App& c, WorkloadWords& words) {
    c.add_option("--args", words.args, "its arguments, for instance 512,512,512; see kiln ops")
        ->type_name("N,N,...");
    c.add_option("--dtype", words.dtype, "type of the inputs")->capture_default_str();
    c.add_option("--out-dtype", words.out_dtype, "type of sums and results [as --dtype]");
    c.add_option("--epilogue", words.epilogue, "what follows it, for instance bias,relu");
  }

  void AddJobFlags(CLI::App& c) {
    c.add_option("op", flags_.ops,
                 "an operator (kiln ops), or text files (*.te), each a task of the job");
    AddWords(c, flags_.words);
    c.add_option(
         "--tasks", flags_.job.tasks_path,
         "instead: a file with a task a line: WEIGHT OPERATOR ARGS EPILOGUE, or WEIGHT *.te")
        ->type_name("FILE");
    c.add_option("--forms", flags_.job.forms,
                 "direct, winograd or all: which forms of a convolution; others than direct take "
                 "weights that are prepared before")
        ->check(CLI::IsMember({kDirectForms, kWinogradForms, kAllForms}))
        ->capture_default_str();
    c.add_option("--weights", flags_.job.weights, "uses of each task in the network [1,1,...]")
        ->delimiter(',')
        ->type_name("N,N,...");
    c.add_option("--target", flags_.job.target,
                 "llvm, llvm -mcpu=..., cuda, or null (measures nothing)")
        ->capture_default_str();
    c.add_option("--trials", flags_.trials, "candidates to measure")
        ->check(CLI::Range(1u, kMostTrials))
        ->capture_default_str();
    c.add_option("--seed", flags_.seed, "of everything random")->capture_default_str();
    c.add_option("--policy", flags_.policy, "how candidates are found")->capture_default_str();
    c.add_option("--parameter", flags_.job.parameters,
                 "of the policy: NAME=NUMBER, any number of them")
        ->type_name("NAME=NUMBER");
    c.add_option("--early-stopping", flags_.early_stopping,
                 "stop a task after so many trials without improvement; 0 = never")
        ->capture_default_str();
    c.add_option("--total-early-stopping", flags_.total_early_stopping,
                 "stop after so many trials that improved no task; 0 = never")
        ->capture_default_str();
    c.add_option("--objective", flags_.objective, "of the tasks' latencies, what is to be small")
        ->check(CLI::IsMember(search::ObjectiveNames()))
        ->capture_default_str();
    c.add_option("--latency-target-ms", flags_.latency_target_ms,
                 "stop when the objective is so small; 0 = never")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    c.add_option("--trials-per-round", flags_.trials_per_round,
                 "candidates that are proposed at once; 0 = 64, fewer for many tasks")
        ->capture_default_str();
    c.add_option("--task-strategy", flags_.task_strategy, "which task is next")
        ->check(CLI::IsMember({"gradient", "round-robin"}))
        ->capture_default_str();
    c.add_flag("--lock-step", flags_.lock_step,
               "search and measure in turns: the same seed proposes the same for the same costs");
    c.add_flag("--no-warm-start", flags_.no_warm_start,
               "use nothing that earlier jobs measured: for comparisons of searches");
    c.add_option("--name", flags_.job.name, "of the job [the operator]");
    c.add_option("--priority", flags_.job.priority, "over other jobs, higher first")
        ->capture_default_str();
    AddMeasureFlags(c);
    AddPlace(c);
  }

  void AddMeasureFlags(CLI::App& c) {
    auto number = [&](const char* name, uint32_t& value, uint32_t least, uint32_t most,
                      const char* what) {
      return c.add_option(name, value, what)
          ->check(CLI::Range(least, most))
          ->capture_default_str()
          ->group("Measuring");
    };
    exact_flags_.push_back(number("--number", flags_.number, 1, kMostCalls,
                                  "calls of the program that are timed at once"));
    exact_flags_.push_back(number("--repeat", flags_.repeat, 1, kMostCalls,
                                  "timings of each candidate; their mean counts"));
    number("--min-repeat-ms", flags_.min_repeat_ms, 0, kLongestMs,
           "least time of one timing: more calls if it is shorter");
    c.add_option("--finalists", flags_.finalists,
                 "so many of each task's best are measured again at the end, at length; 0 = none")
        ->check(CLI::Range(0, 1000))
        ->capture_default_str()
        ->group("Measuring");
    c.add_option("--idle-ms", flags_.idle_ms,
                 "where no other trial waits for the device, more timings for up to so long; 50 on "
                 "GPUs, 0 (none) elsewhere and with --number, --repeat or --lock-step")
        ->check(CLI::Range(0, 10'000))
        ->group("Measuring");
    number("--cooldown-ms", flags_.cooldown_ms, 0, kLongestMs, "pause after each trial");
    number("--timeout-ms", flags_.timeout_ms, 1, kLongestMs, "limit of one trial's run");
    number("--build-timeout-ms", flags_.build_timeout_ms, 1, kLongestMs, "limit of one build");
    c.add_flag("--flush-cache", flags_.flush_cache, "empty the caches before each timing")
        ->group("Measuring");
    c.add_option("--fault", flags_.job.faults,
                 "TRIAL:FAULT builds a broken program into a trial, to see what becomes of it "
                 "(null-store, infinite-loop, wrong-answer, trap, out-of-bounds, compiler-crash, "
                 "compiler-hang)")
        ->type_name("TRIAL:FAULT")
        ->group("Measuring");
  }

  JobFlags Job() const {
    JobFlags job = flags_.job;
    job.words = flags_.words;
    if (!flags_.ops.empty()) job.words.op = flags_.ops[0];
    for (size_t i = 1; i < flags_.ops.size(); ++i) job.more.push_back(flags_.ops[i]);
    v1::TuneOptions& options = job.options;
    options.set_trials(flags_.trials);
    options.set_seed(flags_.seed);
    options.set_policy(flags_.policy);
    options.set_early_stopping(flags_.early_stopping);
    options.set_total_early_stopping(flags_.total_early_stopping);
    options.set_objective(flags_.objective);
    options.set_latency_target_s(1e-3 * flags_.latency_target_ms);
    options.set_trials_per_round(flags_.trials_per_round);
    options.set_task_strategy(flags_.task_strategy);
    options.set_lock_step(flags_.lock_step);
    options.set_no_warm_start(flags_.no_warm_start);
    options.set_finalists(FinalistsOf(flags_));
    options.set_build_timeout_ms(flags_.build_timeout_ms);
    v1::MeasureOptions& measure = *options.mutable_measure();
    measure.set_number(flags_.number);
    measure.set_repeat(flags_.repeat);
    measure.set_min_repeat_ms(flags_.min_repeat_ms);
    measure.set_cooldown_ms(flags_.cooldown_ms);
    measure.set_timeout_ms(flags_.timeout_ms);
    measure.set_flush_cache(flags_.flush_cache);
    measure.set_idle_ms(IdleMs());
    return job;
  }

  // What was asked for in numbers is done so, and what is to come out the same each time. On a CPU
  // the builders have the cores that seem idle.
  uint32_t IdleMs() const {
    if (flags_.idle_ms.has_value()) return *flags_.idle_ms;
    const bool exact = std::ranges::any_of(
        exact_flags_, [](const CLI::Option* option) { return option->count() > 0; });
    return exact || flags_.lock_step || !flags_.job.target.starts_with("cuda") ? 0 : kIdleMs;
  }

  // The wire's 0 is "not said", which leaves it to the scheduler.
  static int FinalistsOf(const Flags& flags) {
    if (flags.finalists == 0) return -1;
    return flags.finalists == Flags().finalists ? 0 : flags.finalists;
  }

  void AddFollowFlags(CLI::App& c) {
    c.add_flag("--explain", flags_.job.follow.explain,
               "say of each candidate where it came from and how it scored, and of each round what "
               "was dropped and why")
        ->group("Output");
    c.add_option("--log-file", flags_.job.follow.latency_log,
                 "write a line for each round: elapsed time, total latency, trials, best of each "
                 "task")
        ->type_name("FILE")
        ->group("Output");
  }

  void AddJobCommands() {
    CLI::App* tune =
        Command(app_, "tune", "tune an operator and watch it; without --scheduler on this machine",
                [this]() -> StatusOr<int> {
                  StopSignal stop;  // before any thread
                  InitGrpc();
                  return Tune(Job(), flags_.cluster, flags_.resume, flags_.session, stop);
                });
    AddJobFlags(*tune);
    AddFollowFlags(*tune);
    tune->add_option("--resume", flags_.resume,
                     "go on with an unfinished job of the database; alone: the newest one")
        ->expected(0, 1)
        ->default_str("last")
        ->type_name("JOB");
    tune->add_option("--log-dir", flags_.cluster.log_folder,
                     "keep the logs of the processes started here [in a temporary folder]")
        ->group("Without a scheduler");
    tune->add_option("--threads", flags_.cluster.threads, "cores to measure on; 0 = all")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str()
        ->group("Without a scheduler");
    tune->add_option("--build-jobs", flags_.cluster.build_jobs, "builds at once; 0 = one per core")
        ->check(CLI::Range(0, 4096))
        ->capture_default_str()
        ->group("Without a scheduler");

    CLI::App* submit = Command(app_, "submit", "hand a job to a scheduler and print its id",
                               Plain([this] { return SubmitCommand(Job(), flags_.session); }));
    AddJobFlags(*submit);

    CLI::App* jobs =
        Command(app_, "jobs", "list the jobs, or show one with its failed trials", Plain([this] {
                  if (flags_.job_id.empty()) return JobsCommand(flags_.limit, flags_.session);
                  return flags_.timing ? JobTimingCommand(flags_.job_id, flags_.session)
                                       : JobCommand(flags_.job_id, flags_.all, flags_.session);
                }));
    jobs->add_option("job", flags_.job_id, "id of one job");
    jobs->add_option("--limit", flags_.limit, "the newest so many; 0 = all")->capture_default_str();
    jobs->add_flag("--all", flags_.all, "all failed trials of the job, not the first ones");
    jobs->add_flag("--timing", flags_.timing, "of one job: where the time of its trials went");
    AddPlace(*jobs);

    CLI::App* watch =
        Command(app_, "watch", "watch a job of a scheduler to its end", [this]() -> StatusOr<int> {
          StopSignal stop;  // before any thread
          InitGrpc();
          return WatchCommand(flags_.job_id, flags_.job.follow, flags_.session, stop);
        });
    watch->add_option("job", flags_.job_id, "id of the job")->required();
    AddFollowFlags(*watch);
    AddPlace(*watch);

    CLI::App* cancel =
        Command(app_, "cancel", "cancel a job; its records are kept",
                Plain([this] { return CancelCommand(flags_.job_id, flags_.session); }));
    cancel->add_option("job", flags_.job_id, "id of the job")->required();
    AddPlace(*cancel);

    CLI::App* workers =
        Command(app_, "workers", "list a tracker's workers and its queue",
                Plain([this] { return WorkersCommand(flags_.tracker, flags_.session.json); }));
    workers
        ->add_option_function<std::string>(
            "--tracker",
            [this](const std::string& value) {
              flags_.tracker = value;
              tracker_given_ = true;
            },
            "address of the tracker [127.0.0.1:9190]")
        ->type_name("HOST:PORT");
    AddJson(*workers);
  }

  void AddSubject(CLI::App& c) {
    c.add_option("what", flags_.subject.what,
                 "a job, a workload key, the number of a record, an operator (with --args), or a "
                 "text file; nothing: the newest job");
    c.add_option("--op", flags_.subject.words.op, "an operator or text file");
    AddWords(c, flags_.subject.words);
    c.add_option("--target", flags_.subject.target, "only targets that start so");
    c.add_option("--task", flags_.subject.task, "only this task of a job");
    AddPlace(c);
  }

  void AddRecordCommands() {
    CLI::App* best = Command(app_, "best", "the best record of a workload or of a job",
                             Plain([this] { return BestCommand(flags_.subject, flags_.session); }));
    AddSubject(*best);

    CLI::App* show =
        Command(app_, "show", "a schedule in every form, the best one by default", Plain([this] {
                  if (flags_.sketches) return SketchesCommand(flags_.subject, flags_.session);
                  return ShowCommand(flags_.subject, flags_.form, flags_.steps, flags_.session);
                }));
    AddSubject(*show);
    show->add_option("--as", flags_.form, "dag, steps, schedule, loops, program, llvm, asm or cuda")
        ->check(CLI::IsMember(RenderForms()))
        ->capture_default_str();
    show->add_option("--record", flags_.subject.record, "this record, by its number")
        ->check(CLI::PositiveNumber);
    show->add_option("--steps", flags_.steps,
                     "with --op: a file with steps as JSON; none: the unscheduled loops")
        ->type_name("FILE");
    show->add_flag("--sketches", flags_.sketches,
                   "the sketches that a search fills in: loops with blanks, for --target (llvm)")
        ->excludes("--as")
        ->excludes("--steps");

    CLI::App* export_kernel = Command(
        app_, "export-kernel",
        "a cuda record as a file for nvcc: kernels, reference, a main that checks and times",
        Plain(
            [this] { return ExportKernelCommand(flags_.subject, flags_.output, flags_.session); }));
    AddSubject(*export_kernel);
    export_kernel->add_option("--record", flags_.subject.record, "this record, by its number")
        ->check(CLI::PositiveNumber);
    export_kernel->add_option("-o,--output", flags_.output,
                              "the file, for instance kernel.cu [stdout]");

    CLI::App* trial =
        Command(app_, "trial", "build and measure one recorded trial again, alone",
                Plain([this] { return TrialCommand(flags_.trial, flags_.keep, flags_.session); }));
    trial->add_option("trial", flags_.trial, "JOB/NUMBER")->required();
    trial->add_option("--keep", flags_.keep, "keep requests and binaries in this folder");
    AddPlace(*trial);

    CLI::App* records = app_.add_subcommand("records", "records in and out as measure logs");
    records->require_subcommand(1);
    AddRecordSubcommands(*records);
  }

  void AddRecordSubcommands(CLI::App& records) {
    CLI::App* out =
        Command(records, "export", "print records as lines of a measure log",
                Plain([this] { return ExportCommand(flags_.exported, flags_.session); }));
    out->add_option("--job", flags_.exported.job, "only of this job");
    out->add_option("--workload", flags_.exported.workload, "only of this workload key");
    out->add_flag("--errors", flags_.exported.errors, "failed trials too");
    out->add_option("-o,--output", flags_.exported.output, "write to this file [stdout]");
    AddPlace(*out);

    CLI::App* in = Command(records, "import", "add the lines of a measure log",
                           Plain([this] { return ImportCommand(flags_.path, flags_.session); }));
    in->add_option("file", flags_.path, "the log; - = stdin")->required();
    AddPlace(*in);

    CLI::App* distill = Command(
        records, "distill", "the best record of each workload, as a measure log",
        Plain([this] { return DistillCommand(flags_.path, flags_.output, flags_.session); }));
    distill->add_option("file", flags_.path, "a log [the records of the database or scheduler]");
    distill->add_option("-o,--output", flags_.output, "write to this file [stdout]");
    AddPlace(*distill);

    CLI::App* measure =
        Command(records, "measure",
                "build, check and time the records of a log on this machine, against the log",
                [this]() -> StatusOr<int> {
                  InitGrpc();
                  MeasureLogFlags measured = flags_.measured_log;
                  measured.measure = Job().options.measure();
                  measured.build_timeout_ms = flags_.build_timeout_ms;
                  return MeasureLogCommand(measured, flags_.session);
                });
    measure->add_option("file", flags_.measured_log.path, "the log")->required();
    measure->add_option("--target", flags_.measured_log.target,
                        "llvm or cuda: the device [as the log's first line]");
    AddMeasureFlags(*measure);
    AddPlace(*measure);

    CLI::App* stats = Command(records, "stats", "how many records there are of what",
                              Plain([this] { return StatsCommand(flags_.session); }));
    AddPlace(*stats);
  }

  void AddTools() {
    CLI::App* ops = Command(app_, "ops", "list the operators, or the parameters of one",
                            Plain([this] { return OpsCommand(flags_.name, flags_.session.json); }));
    ops->add_option("operator", flags_.name, "one operator");
    AddJson(*ops);

    CLI::App* check =
        Command(app_, "check", "check a text file (or operator): canonical form, FLOPs, key",
                Plain([this] { return CheckCommand(flags_.words, flags_.session.json); }));
    check->add_option("file", flags_.words.op, "the text file, or an operator with --args")
        ->required();
    AddWords(*check, flags_.words);
    AddJson(*check);

    CLI::App* doctor = Command(app_, "doctor", "what this machine offers and lacks",
                               Plain([this] { return DoctorCommand(flags_.session); }));
    AddPlace(*doctor);

    CLI::App* selftest =
        Command(app_, "selftest",
                "try the device of this machine: programs of every kind, faults, a job with faults",
                [this]() -> StatusOr<int> {
                  InitGrpc();
                  flags_.selftest.seed = flags_.seed;
                  return SelfTest(flags_.selftest, flags_.session.json);
                });
    selftest->add_option("--device", flags_.selftest.device, "cuda, cuda:0, cuda:GPU-... or cpu")
        ->capture_default_str();
    selftest->add_option("--trials", flags_.selftest.trials, "of the job with faults")
        ->check(CLI::Range(24u, kMostTrials))
        ->capture_default_str();
    selftest->add_option("--seed", flags_.seed, "of everything random")->capture_default_str();
    selftest
        ->add_option("--slack", flags_.selftest.slack_s,
                     "seconds that the trial after a fault may take")
        ->capture_default_str();
    selftest->add_option("--log-dir", flags_.selftest.log_folder,
                         "keep the logs of the processes started here");
    AddJson(*selftest);

    CLI::App* conformance = Command(
        app_, "conformance",
        "random candidates of many workloads on this machine's device, and what became of each",
        [this]() -> StatusOr<int> {
          InitGrpc();
          ConformanceFlags conformance_flags = flags_.conformance;
          conformance_flags.options = Job().options;
          KILN_RETURN_IF_ERROR(AddFaults(flags_.job.faults, conformance_flags.options));
          return ConformanceCommand(conformance_flags, flags_.session);
        });
    conformance->add_option("--target", flags_.conformance.target, "cuda, llvm or null")
        ->capture_default_str();
    conformance->add_option("--trials", flags_.trials, "candidates of each workload")
        ->check(CLI::Range(1u, kMostTrials))
        ->capture_default_str();
    conformance->add_option("--only", flags_.conformance.only,
                            "only workloads whose name has this, for instance softmax");
    conformance->add_option("--seed", flags_.seed, "of everything random")->capture_default_str();
    conformance->add_option("--log-dir", flags_.conformance.log_folder,
                            "keep the logs of the processes started here");
    AddMeasureFlags(*conformance);
    AddPlace(*conformance);

    CLI::App* version = Command(app_, "version", "print the version",
                                Plain([this] { return VersionCommand(flags_.session.json); }));
    AddJson(*version);
  }

  // For the help; main never gets here with them.
  void AddDaemons() {
    for (const auto& [name, what] :
         {std::pair{"tracker", "keeps the list of workers and leases them"},
          std::pair{"scheduler", "runs jobs and keeps the records"},
          std::pair{"builder", "compiles candidates"},
          std::pair{"runner", "checks and times programs on a device"}}) {
      app_.add_subcommand(name, what)->group("Daemons");
    }
  }

  CLI::App app_;
  std::vector<const CLI::Option*> exact_flags_;  // --number and --repeat, of each command
  Flags flags_;
  bool tracker_given_ = false;
  Run run_;
};

}  // namespace

int RunCommandLine(int argc, char** argv) {
  InitLog("kiln");
  SetLogLevel(LogLevel::kWarn);
  CommandLine command_line(argv[0]);
  return command_line.Main(argc, argv);
}

}  // namespace kiln::client
