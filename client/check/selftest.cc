#include "client/check/selftest.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/process/process_tree.h"
#include "base/process/subprocess.h"
#include "base/text/shell_word.h"
#include "base/text/units.h"
#include "client/check/samples.h"
#include "client/check/selftest_programs.h"
#include "client/client.h"
#include "client/direct_trials.h"
#include "client/view/json.h"
#include "compiler/codegen/backends/backends.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "rpc/artifact_digest.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

constexpr uint32_t kFaultTimeoutMs = 1500;
constexpr uint32_t kRunTimeoutMs = 10'000;
constexpr uint32_t kBuildTimeoutMs = 60'000;
constexpr int64_t kTooManyBytes = int64_t{1} << 44;

enum class Outcome { kPass, kFail, kSkip };

struct Verdict {
  Outcome outcome = Outcome::kPass;
  std::string detail;
};
Verdict Pass(std::string detail) { return {Outcome::kPass, std::move(detail)}; }
Verdict Fail(std::string detail) { return {Outcome::kFail, std::move(detail)}; }
Verdict Skip(std::string detail) { return {Outcome::kSkip, std::move(detail)}; }

// Prints each check when it ends, and counts.
class Report {
 public:
  explicit Report(bool json) : json_(json) {}

  void Heading(const std::string& text) {
    if (!json_) fmt::print("{}\n", text);
  }
  void Add(const std::string& check, const Verdict& verdict) {
    constexpr const char* kWords[] = {"pass", "FAIL", "skip"};
    const char* word = kWords[static_cast<int>(verdict.outcome)];
    ++counts_[static_cast<int>(verdict.outcome)];
    if (json_) {
      fmt::print("{{\"check\":{},\"outcome\":\"{}\",\"detail\":{}}}\n", JsonString(check), word,
                 JsonString(verdict.detail));
    } else {
      fmt::print("  {}  {:<28}  {}\n", word, check, verdict.detail);
    }
    std::fflush(stdout);
  }
  // Prints the last line and returns the exit status.
  int Finish() {
    if (json_) {
      fmt::print("{{\"passed\":{},\"failed\":{},\"skipped\":{}}}\n", counts_[0], counts_[1],
                 counts_[2]);
    } else {
      fmt::print("{} passed, {} failed, {} skipped\n", counts_[0], counts_[1], counts_[2]);
    }
    return counts_[1] == 0 ? 0 : 1;
  }

 private:
  const bool json_;
  int counts_[3] = {0, 0, 0};
};

// Returns the number of devices that the runner would announce, by its --list. An error says why
// there is none.
StatusOr<uint32_t> CountDevices(const std::string& device) {
  KILN_ASSIGN_OR_RETURN(const std::string executable, CurrentExecutable());
  SubprocessOptions options;
  options.argv = {executable, "runner", "--device", device, "--list"};
  options.output = options.error = SubprocessOptions::Stream::kPipe;
  KILN_ASSIGN_OR_RETURN(const RunResult result, RunToEnd(std::move(options), {}, absl::Minutes(1)));
  if (result.exit.ok() && !result.output.empty()) {
    return static_cast<uint32_t>(std::ranges::count(result.output, '\n'));
  }
  std::string reason = FirstLine(result.error);
  if (reason.starts_with("runner: ")) reason.erase(0, 8);
  return FailedPrecondition("{}", reason.empty() ? result.exit.ToString() : reason);
}

// Kills all that descends from a process, the last ones first. A child in namespaces has a process
// around it, and would live on for a moment after that one.
void KillDescendants(pid_t process) {
  for (const pid_t child : ChildrenOf(process)) {
    KillDescendants(child);
    kill(child, SIGKILL);
  }
}

// The runner stands still meanwhile, so that no child is killed in the trial after this one.
void KillChildren(pid_t runner) {
  kill(runner, SIGSTOP);
  KillDescendants(runner);
  kill(runner, SIGCONT);
}

std::string ResultText(const v1::TrialResult& result) {
  if (result.error() == v1::NO_ERROR) return FormatSeconds(MeanCost(result));
  return fmt::format("{}: {}", ErrorName(result.error()), FirstLine(result.message()));
}

class SelfTester {
 public:
  SelfTester(const SelfTestFlags& flags, uint32_t devices, LocalCluster& cluster,
             DirectTrials& trials, Report& report)
      : flags_(flags), devices_(devices), cluster_(cluster), trials_(trials), report_(report) {}

  Status Run() {
    KILN_ASSIGN_OR_RETURN(target_, target::ParseTarget(trials_.runner().target()));
    report_.Heading(
        fmt::format("device {} ({})", trials_.runner().device(), trials_.runner().target()));
    report_.Heading("programs: built, checked against the unscheduled program, timed");
    for (const SelfTestProgram& program : SelfTestPrograms(target_)) {
      report_.Add(program.kind, CheckProgram(program));
    }
    report_.Heading("faults: each costs one trial, and the next one works at once");
    KILN_RETURN_IF_ERROR(PrepareFaults());
    CheckFaults();
    report_.Heading("a job with faults, its runner's children killed");
    report_.Add(fmt::format("job of {} trials", flags_.trials), CheckJob());
    return OkStatus();
  }

 private:
  Verdict CheckProgram(const SelfTestProgram& program) {
    auto result = RunProgram(program);
    const std::string name = program.workload.Description();
    if (!result.ok()) {
      const bool skip = result.status().code() == StatusCode::kNotFound;
      const std::string text = fmt::format("{}: {}", name, Message(result.status()));
      return skip ? Skip(text) : Fail(text);
    }
    const std::string text = fmt::format("{}: {}", name, ResultText(*result));
    if (!result->unchecked().empty()) return Fail(text + ", not checked: " + result->unchecked());
    return result->error() == v1::NO_ERROR ? Pass(text) : Fail(text);
  }

  StatusOr<v1::TrialResult> RunProgram(const SelfTestProgram& program) {
    KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, program.workload.Build());
    const target::Target target = TargetFor(program, target_);
    DirectTrial trial = TrialOf(*dag, target);
    KILN_ASSIGN_OR_RETURN(trial.steps, StepsOf(program, dag, target, flags_.seed));
    return trials_.Run(trial);
  }

  DirectTrial TrialOf(const dag::Dag& dag, const target::Target& target) const {
    DirectTrial trial;
    trial.dag = dag::PrintDag(dag);
    trial.target = target::PrintTarget(target);
    trial.seed = flags_.seed;
    trial.build_timeout_ms = kBuildTimeoutMs;
    trial.options.set_timeout_ms(kRunTimeoutMs);
    return trial;
  }

  // ---- faults

  // Makes a correct program and its artifact. The faults are put into it.
  Status PrepareFaults() {
    KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::BuildOp("matmul", "128,128,128"));
    right_ = TrialOf(*dag, target_);
    KILN_ASSIGN_OR_RETURN(const auto samples, SampleSteps(dag, target_, flags_.seed, 1));
    if (samples.empty()) return Internal("random sampling finds no candidate of a matmul");
    right_.steps = samples[0];
    KILN_ASSIGN_OR_RETURN(artifact_, Built(v1::FAULT_NONE));
    KILN_ASSIGN_OR_RETURN(reference_, trials_.Reference(right_));
    const Verdict before = CheckRight();
    if (before.outcome == Outcome::kPass) return OkStatus();
    return Internal("the matmul that faults are tried on does not work: {}", before.detail);
  }

  StatusOr<v1::Artifact> Built(v1::Fault fault) {
    DirectTrial trial = right_;
    trial.fault = fault;
    KILN_ASSIGN_OR_RETURN(const v1::BuildReply reply, trials_.Build(trial));
    if (reply.error() != v1::NO_ERROR) return Internal("{}", reply.message());
    return reply.artifact();
  }

  // Measures the correct program after a fault: it must work, and soon.
  Verdict CheckRight() {
    const double start_s = Clock::Real().MonotonicSeconds();
    const auto result = trials_.Measure(artifact_, reference_, right_);
    const double took_s = Clock::Real().MonotonicSeconds() - start_s;
    if (!result.ok()) return Fail(fmt::format("next trial: {}", Message(result.status())));
    if (result->error() != v1::NO_ERROR) {
      return Fail(fmt::format("next trial: {}", ResultText(*result)));
    }
    const std::string text = fmt::format("next trial in {}", FormatSeconds(took_s));
    return took_s <= flags_.slack_s ? Pass(text) : Fail(text + ", too long");
  }

  // Checks that `artifact` fails with the error `want`.
  Verdict CheckFault(const v1::Artifact& artifact, v1::ErrorKind want) {
    DirectTrial trial = right_;
    trial.options.set_timeout_ms(kFaultTimeoutMs);
    const auto result = trials_.Measure(artifact, reference_, trial);
    if (!result.ok()) return Fail(std::string(Message(result.status())));
    const Verdict next = CheckRight();
    const std::string text = fmt::format("{}; {}", ResultText(*result), next.detail);
    if (result->error() == want) return {next.outcome, text};
    return Fail(fmt::format("expected {}, got {}", ErrorName(want), text));
  }

  void CheckFaults() {
    const struct {
      const char* name;
      v1::Fault fault;
      v1::ErrorKind want;
    } faults[] = {
        {"illegal address", v1::FAULT_NULL_STORE, v1::RUNTIME_DEVICE_ERROR},
        {"store behind the output", v1::FAULT_OUT_OF_BOUNDS, v1::RUNTIME_DEVICE_ERROR},
        {"trap", v1::FAULT_TRAP, v1::RUNTIME_DEVICE_ERROR},
        {"infinite loop", v1::FAULT_INFINITE_LOOP, v1::RUN_TIMEOUT_ERROR},
        {"wrong answer", v1::FAULT_WRONG_ANSWER, v1::WRONG_ANSWER_ERROR},
    };
    for (const auto& fault : faults) {
      const auto artifact = Built(fault.fault);
      report_.Add(fault.name, artifact.ok() ? CheckFault(*artifact, fault.want)
                                            : Fail(std::string(Message(artifact.status()))));
    }
    v1::Artifact changed = artifact_;
    v1::ArgSpec& workspace = *changed.mutable_plan()->add_args();
    workspace.set_name("too_large");
    workspace.set_dtype("int8");
    workspace.add_shape(kTooManyBytes);
    workspace.set_role(v1::ArgSpec::WORKSPACE);
    workspace.set_alignment_bytes(64);
    changed.set_digest(DigestOf(changed));
    report_.Add("more memory than there is", CheckFault(changed, v1::RUNTIME_DEVICE_ERROR));
    changed = artifact_;
    changed.mutable_binary()->resize(changed.binary().size() / 2);
    changed.set_digest(DigestOf(changed));
    report_.Add("binary cut off", CheckFault(changed, v1::COMPILE_DEVICE_ERROR));
    report_.Add("child killed", CheckKill());
  }

  // Kills the runner's children while one of them runs a program.
  Verdict CheckKill() {
    const auto endless = Built(v1::FAULT_INFINITE_LOOP);
    if (!endless.ok()) return Fail(std::string(Message(endless.status())));
    std::jthread killer([pid = cluster_.runner_pid()] {
      absl::SleepFor(absl::Milliseconds(kFaultTimeoutMs / 2));
      KillChildren(pid);
    });
    return CheckFault(*endless, v1::RUNTIME_DEVICE_ERROR);
  }

  // ---- the job

  v1::JobSpec JobWithFaults() const {
    v1::JobSpec spec;
    spec.set_name("selftest");
    spec.set_user("selftest");
    v1::TaskSpec& task = *spec.add_tasks();
    task.set_dag(right_.dag);
    task.set_target(right_.target);
    task.set_description("matmul 128,128,128");
    v1::TuneOptions& options = *spec.mutable_options();
    options.set_trials(flags_.trials);
    options.set_seed(flags_.seed);
    options.set_build_timeout_ms(kBuildTimeoutMs);
    options.mutable_measure()->set_timeout_ms(kFaultTimeoutMs);
    for (const auto& [trial, fault] : faults_) (*options.mutable_faults())[trial] = fault.first;
    return spec;
  }

  Verdict CheckJob() {
    std::map<uint32_t, v1::Record> records;
    v1::JobStatus end;
    const Status status = RunJob(records, end);
    if (!status.ok()) return Fail(std::string(Message(status)));
    if (end.state() != v1::SUCCEEDED) {
      return Fail(fmt::format("it ended {}: {}", JobStateName(end.state()), end.message()));
    }
    if (records.size() != flags_.trials) {
      return Fail(fmt::format("{} records of {} trials", records.size(), flags_.trials));
    }
    uint32_t killed = 0;
    for (const auto& [trial, record] : records) {
      const auto fault = faults_.find(trial);
      const v1::ErrorKind want = fault == faults_.end() ? v1::NO_ERROR : fault->second.second;
      const v1::TrialResult& result = record.result();
      if (result.error() == want) continue;
      // A kill costs the trial that it hits. That trial may be broken anyway.
      if (result.message().find("signal 9") != std::string::npos) {
        ++killed;
        continue;
      }
      return Fail(
          fmt::format("trial {} expected {}, got {}", trial, ErrorName(want), ResultText(result)));
    }
    const std::string text = fmt::format(
        "{} faults, each one trial of its kind; children killed {} times, {} trials "
        "lost by that; ended after {}",
        faults_.size(), kills_, killed, FormatElapsed(end.elapsed_s()));
    if (killed > kills_ * devices_) return Fail(text);
    if (kills_ < kWantedKills) return Fail(text + "; too few kills");
    return Pass(text);
  }

  Status RunJob(std::map<uint32_t, v1::Record>& records, v1::JobStatus& end) {
    KILN_ASSIGN_OR_RETURN(const auto client, SchedulerClient::Connect(cluster_.scheduler_address(),
                                                                      cluster_.secret()));
    KILN_ASSIGN_OR_RETURN(const std::string job, client->Submit(JobWithFaults()));
    const std::stop_source stop;
    return client->Watch(
        job,
        [&](const v1::JobEvent& event) {
          end = event.status();
          if (!event.has_record()) return;
          records[event.record().trial()] = event.record();
          const bool due =
              records.size() == flags_.trials / 3 || records.size() == flags_.trials / 2;
          if (!due) return;
          KillChildren(cluster_.runner_pid());
          ++kills_;
        },
        stop.get_token());
  }

  static constexpr uint32_t kWantedKills = 2;

  const SelfTestFlags& flags_;
  // Devices of the runner. The job uses all of them.
  const uint32_t devices_;
  LocalCluster& cluster_;
  DirectTrials& trials_;
  Report& report_;
  target::Target target_;
  DirectTrial right_;
  v1::Artifact artifact_, reference_;
  const std::map<uint32_t, std::pair<v1::Fault, v1::ErrorKind>> faults_ = {
      {2, {v1::FAULT_NULL_STORE, v1::RUNTIME_DEVICE_ERROR}},
      {5, {v1::FAULT_INFINITE_LOOP, v1::RUN_TIMEOUT_ERROR}},
      {8, {v1::FAULT_TRAP, v1::RUNTIME_DEVICE_ERROR}},
      {11, {v1::FAULT_OUT_OF_BOUNDS, v1::RUNTIME_DEVICE_ERROR}},
      {14, {v1::FAULT_WRONG_ANSWER, v1::WRONG_ANSWER_ERROR}},
      {17, {v1::FAULT_COMPILER_CRASH, v1::COMPILE_HOST_ERROR}},
      {19, {v1::FAULT_NULL_STORE, v1::RUNTIME_DEVICE_ERROR}},
  };
  uint32_t kills_ = 0;
};

// Returns the number of devices that can be tested here. An error says why nothing can be tested.
StatusOr<uint32_t> CheckMachine(const std::string& device) {
  KILN_ASSIGN_OR_RETURN(const uint32_t devices, CountDevices(device));
  for (const codegen::Backend* backend : codegen::AllBackends()) {
    if (backend->kind().device != device.substr(0, device.find(':'))) continue;
    KILN_RETURN_IF_ERROR(backend->Compiler().status());
  }
  return devices;
}

}  // namespace

StatusOr<int> SelfTest(const SelfTestFlags& flags, bool json) {
  Report report(json);
  const auto devices = CheckMachine(flags.device);
  // Only "cuda" may be missing: a device that the user names must exist.
  if (!devices.ok() && flags.device != "cuda") {
    return Annotate(devices.status(), "device " + flags.device);
  }
  if (!devices.ok()) {
    report.Add("device " + flags.device, Skip(std::string(Message(devices.status()))));
    return report.Finish();
  }
  KILN_ASSIGN_OR_RETURN(const TempDir folder, TempDir::Make("kiln-selftest"));
  LocalCluster::Options options;
  options.db = folder.Join("selftest.db");
  options.device = flags.device;
  options.allow_faults = true;
  options.log_folder = flags.log_folder;
  KILN_ASSIGN_OR_RETURN(const auto cluster, LocalCluster::Start(options, [] { return false; }));
  KILN_ASSIGN_OR_RETURN(const auto trials, DirectTrials::Connect(*cluster));
  KILN_RETURN_IF_ERROR(SelfTester(flags, *devices, *cluster, *trials, report).Run());
  return report.Finish();
}

}  // namespace kiln::client
