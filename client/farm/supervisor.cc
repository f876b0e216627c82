#include "client/farm/supervisor.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/file/file.h"
#include "base/file/private_file.h"
#include "base/log.h"
#include "base/process/process_identity.h"
#include "base/process/subprocess.h"
#include "base/process/user_name.h"
#include "base/server/listen.h"
#include "base/server/net.h"
#include "base/server/secret.h"
#include "client/core_list.h"
#include "client/farm/farm_keys.h"

namespace kiln::client {
namespace {

constexpr int kBuilderPort = 9390;
constexpr int kBuilderPagesPort = 9391;
constexpr int kFirstRunnerPort = 9490;
constexpr int kRunnerPagesPort = 9590;
constexpr char kLoopback[] = "127.0.0.1";
constexpr size_t kTracker = 0, kScheduler = 1, kFirstRunner = 3;
constexpr int kOwnerOnly = 0600;
// A command that looks whether the farm runs has the lock for a moment.
constexpr absl::Duration kLockPatience = absl::Seconds(1);
// A scheduler ends its running calls, and its searches at their next candidate.
constexpr absl::Duration kStopGrace = absl::Seconds(10);
constexpr absl::Duration kLeftoverPatience = absl::Seconds(10);
constexpr absl::Duration kPollPause = absl::Milliseconds(10);
constexpr int64_t kMaxLogBytes = 16 << 20;
constexpr absl::Duration kRenewEvery = absl::Hours(24);

// Returns the first of the ports from `port` on that can be bound now and is none of `taken`; 0 if
// there is none among the next hundred.
int FreePort(const std::string& host, int port, const std::vector<FarmProcess>& taken) {
  const auto is_taken = [&](int one) {
    return std::ranges::any_of(taken, [&](const FarmProcess& process) {
      return process.pages.ends_with(fmt::format(":{}", one));
    });
  };
  for (int one = port; one < port + 100; ++one) {
    if (!is_taken(one) && Listen({host, one}).ok()) return one;
  }
  return 0;
}

// Returns a host that reaches a daemon that listens on `host` from this machine.
std::string HostFromHere(const std::string& host) {
  if (host == "0.0.0.0") return kLoopback;
  return host == "::" ? "::1" : host;
}

// Keeps one earlier log when the present one has become large.
void TurnLog(const std::string& log) {
  const auto size = FileSize(log);
  if (size.ok() && *size > kMaxLogBytes) (void)rename(log.c_str(), (log + ".old").c_str());
}

}  // namespace

StatusOr<std::unique_ptr<FarmSupervisor>> FarmSupervisor::Start(
    const FarmOptions& options, const FindPlaces& find_places,
    const std::function<bool()>& interrupted, Clock& clock) {
  const FarmFolder folder(options.folder);
  KILN_RETURN_IF_ERROR(MakePrivateDir(folder.path()));
  KILN_RETURN_IF_ERROR(CheckPrivateDir(folder.path()));
  StatusOr<FileLock> lock = folder.Lock(kLockPatience, clock);
  if (!lock.ok()) return Annotate(lock.status(), "a farm runs in this folder already");
  KILN_ASSIGN_OR_RETURN(std::string executable, CurrentExecutable());
  std::unique_ptr<FarmSupervisor> farm(
      new FarmSupervisor(options, *std::move(lock), std::move(executable), clock));
  KILN_RETURN_IF_ERROR(farm->EndLeftovers());
  KILN_RETURN_IF_ERROR(farm->MakeAccess());
  KILN_ASSIGN_OR_RETURN(farm->state_.supervisor, IdentifyProcess(getpid()));
  KILN_ASSIGN_OR_RETURN(const LocalPlaces places, find_places(options));
  farm->state_.machine = HostName();
  farm->state_.started_s = clock.UnixSeconds();
  KILN_RETURN_IF_ERROR(farm->LaunchAll(places, interrupted));
  farm->state_.up = true;
  farm->Save();
  LogInfo("the farm in {} is up", folder.path());
  return farm;
}

FarmSupervisor::FarmSupervisor(FarmOptions options, FileLock lock, std::string executable,
                               Clock& clock)
    : folder_(options.folder),
      lock_(std::move(lock)),
      executable_(std::move(executable)),
      clock_(clock) {
  state_.options = std::move(options);
}

FarmSupervisor::~FarmSupervisor() {
  std::vector<DaemonChild*> workers;
  for (size_t i = kScheduler + 1; i < members_.size(); ++i) workers.push_back(&members_[i].child);
  if (members_.size() > kScheduler) {
    StopInOrder(members_[kScheduler].child, workers, members_[kTracker].child, kStopGrace);
  }
  // A file that this object did not write stays for those who read its error.
  if (saved_ == FarmState()) return;
  (void)RemoveFile(folder_.StateFile());
  LogInfo("the farm in {} has ended", folder_.path());
}

Status FarmSupervisor::EndLeftovers() {
  const auto earlier = ReadFarmState(folder_.StateFile());
  if (earlier.status().code() == absl::StatusCode::kNotFound) return OkStatus();
  KILN_RETURN_IF_ERROR(earlier.status());
  // They are about to end by themselves, since their supervisor has ended.
  const double end = clock_.MonotonicSeconds() + absl::ToDoubleSeconds(kLeftoverPatience);
  for (const FarmProcess& left : earlier->processes) {
    (void)SignalProcess(left.process, SIGKILL);
    while (IsRunning(left.process)) {
      if (clock_.MonotonicSeconds() > end) {
        return Unavailable("the {} of an earlier farm, process {}, does not end", left.name,
                           left.process.pid);
      }
      clock_.SleepFor(kPollPause);
    }
  }
  return OkStatus();
}

Status FarmSupervisor::MakeAccess() {
  const std::string& authority = state_.options.authority;
  if (authority.empty()) {
    access_ = {"--secret-file", folder_.SecretFile()};
    return MakeSecret();
  }
  KILN_ASSIGN_OR_RETURN(const FarmKeys keys,
                        MakeFarmKeys(authority, MemberOfUser(UserName()), clock_));
  access_ = {"--keys", keys.daemons};
  state_.user_keys = keys.user;
  next_renewal_ = clock_.Now() + kRenewEvery;
  return OkStatus();
}

void FarmSupervisor::RenewKeys() {
  const std::string& authority = state_.options.authority;
  if (authority.empty() || clock_.Now() < next_renewal_) return;
  next_renewal_ = clock_.Now() + kRenewEvery;
  const Status renewed = MakeFarmKeys(authority, MemberOfUser(UserName()), clock_).status();
  if (!renewed.ok()) LogWarn("the keys of the farm were not looked at: {}", Message(renewed));
}

Status FarmSupervisor::MakeSecret() const {
  const std::string path = folder_.SecretFile();
  if (!FileExists(path)) {
    KILN_RETURN_IF_ERROR(WriteFileAtomically(path, Secret::Random().text() + "\n", kOwnerOnly));
  }
  return Secret::Read(path).status();
}

void FarmSupervisor::AddMember(const std::string& name, const std::string& host, int port,
                               int pages, const std::vector<int>& cores,
                               std::vector<std::string> flags) {
  DaemonChild::Options child;
  child.executable = executable_;
  child.daemon = name.substr(0, name.find(' '));
  child.flags = std::move(flags);
  child.flags.insert(child.flags.end(), access_.begin(), access_.end());
  const int pages_port = FreePort(host, pages, state_.processes);
  child.flags.insert(child.flags.end(), {"--http-port", fmt::format("{}", pages_port)});
  child.host = host;
  const bool free = Listen({host, port}).ok();
  child.port = fmt::format("{}", free ? port : 0);
  if (!free) {
    state_.notes.push_back(
        fmt::format("port {} is taken by another process; the {} has another one", port, name));
  }
  child.port_file = folder_.PortFile(name);
  child.log = folder_.LogFile(name);
  child.cores = cores;
  members_.push_back({DaemonChild(std::move(child))});
  state_.processes.push_back(
      {.name = name,
       .cores = CoreListText(cores),
       .pages = pages_port == 0 ? "" : HostPort{HostFromHere(host), pages_port}.ToString(),
       .log = folder_.LogFile(name)});
}

void FarmSupervisor::AddRunner(const LocalPlaces::Runner& runner, int port,
                               const std::string& tracker) {
  const LocalDevice& device = runner.device;
  std::vector<std::string> flags = {"--tracker", tracker, "--device", device.device};
  // The builder beside it would make the canary of a CPU slow.
  if (device.device == "cpu") flags.insert(flags.end(), {"--canary-seconds", "0"});
  AddMember("runner " + device.label, kLoopback, port, kRunnerPagesPort, runner.cores,
            std::move(flags));
  const size_t colon = device.device.find(':');
  state_.processes.back().device =
      colon == std::string::npos
          ? device.name
          : fmt::format("{} ({})", device.name, device.device.substr(colon + 1));
}

Status FarmSupervisor::LaunchAll(const LocalPlaces& places,
                                 const std::function<bool()>& interrupted) {
  const FarmOptions& options = state_.options;
  AddMember("tracker", options.host, kTrackerPort, kTrackerPagesPort, places.others, {});
  KILN_RETURN_IF_ERROR(Launch(kTracker));
  KILN_RETURN_IF_ERROR(members_[kTracker].child.WaitUntilServes(interrupted));
  const HostPort bound = *ParseHostPort(members_[kTracker].child.Address());
  const std::string tracker = HostPort{HostFromHere(options.host), bound.port}.ToString();
  AddMember("scheduler", options.host, kSchedulerPort, kSchedulerPagesPort, places.others,
            {"--tracker", tracker, "--db", options.db, "--exclusive-phases"});
  AddMember("builder", kLoopback, kBuilderPort, kBuilderPagesPort, places.others,
            {"--tracker", tracker, "--jobs", fmt::format("{}", options.workers)});
  int port = kFirstRunnerPort;
  for (const LocalPlaces::Runner& runner : places.runners) AddRunner(runner, port++, tracker);
  for (size_t i = kScheduler; i < members_.size(); ++i) KILN_RETURN_IF_ERROR(Launch(i));
  for (size_t i = 0; i < kFirstRunner; ++i) {
    KILN_RETURN_IF_ERROR(members_[i].child.WaitUntilServes(interrupted));
  }
  KILN_RETURN_IF_ERROR(AwaitRunners(interrupted));
  for (size_t i = 0; i < members_.size(); ++i) LookAt(i);
  return OkStatus();
}

Status FarmSupervisor::AwaitRunners(const std::function<bool()>& interrupted) {
  Status failed;
  size_t serving = 0;
  for (size_t i = kFirstRunner; i < members_.size(); ++i) {
    const Status serves = members_[i].child.WaitUntilServes(interrupted);
    if (serves.code() == absl::StatusCode::kCancelled) return serves;
    if (serves.ok()) {
      ++serving;
      continue;
    }
    failed = serves;
    state_.notes.push_back(fmt::format("the {} did not start at once, the others serve: {}",
                                       state_.processes[i].name, Message(serves)));
  }
  return serving > 0 ? OkStatus() : failed;
}

Status FarmSupervisor::Launch(size_t index) {
  Member& member = members_[index];
  FarmProcess& process = state_.processes[index];
  TurnLog(process.log);
  member.next_start_s.reset();
  member.started_s = clock_.MonotonicSeconds();
  process.phase = FarmProcess::Phase::kStarting;
  KILN_RETURN_IF_ERROR(member.child.Launch());
  process.process = IdentifyProcess(member.child.pid()).value_or(ProcessIdentity());
  Save();
  return OkStatus();
}

void FarmSupervisor::Tick() {
  RenewKeys();
  for (size_t i = 0; i < members_.size(); ++i) LookAt(i);
  Save();
}

void FarmSupervisor::LookAt(size_t index) {
  Member& member = members_[index];
  FarmProcess& process = state_.processes[index];
  if (process.phase == FarmProcess::Phase::kGivenUp) return;
  if (member.next_start_s.has_value()) {
    if (clock_.MonotonicSeconds() < *member.next_start_s) return;
    ++process.restarts;
    const Status launched = Launch(index);
    if (launched.ok()) return;
    LogError("{}: {}", process.name, Message(launched));
    NoteDeath(index, {.code = -1});
    return;
  }
  if (!member.child.Running()) {
    NoteDeath(index, member.child.Exit().value_or(ExitStatus{.code = -1}));
    return;
  }
  const auto serves = member.child.Serves();
  if (!serves.ok() || !*serves || process.phase == FarmProcess::Phase::kServing) return;
  process.phase = FarmProcess::Phase::kServing;
  process.addresses.clear();
  for (const std::string& address : member.child.Addresses()) {
    const auto parsed = ParseHostPort(address);
    process.addresses.push_back(
        parsed.ok() ? HostPort{HostFromHere(parsed->host), parsed->port}.ToString() : address);
  }
}

void FarmSupervisor::NoteDeath(size_t index, const ExitStatus& exit) {
  Member& member = members_[index];
  FarmProcess& process = state_.processes[index];
  process.process = {};
  process.last_end = exit.ToString();
  const auto pause =
      member.policy.Died(absl::Seconds(clock_.MonotonicSeconds() - member.started_s));
  if (!pause.has_value()) {
    process.phase = FarmProcess::Phase::kGivenUp;
    LogError("the {} ended ({}) once too often and is given up: see {}", process.name,
             process.last_end, process.log);
    return;
  }
  process.phase = FarmProcess::Phase::kWaiting;
  member.next_start_s = clock_.MonotonicSeconds() + absl::ToDoubleSeconds(*pause);
  LogWarn("the {} ended ({}); it starts again in {}", process.name, process.last_end,
          absl::FormatDuration(*pause));
}

void FarmSupervisor::Save() {
  if (state_ == saved_) return;
  const Status written = WriteFarmState(folder_.StateFile(), state_);
  if (!written.ok()) {
    LogWarn("{}", Message(written));
    return;
  }
  saved_ = state_;
}

}  // namespace kiln::client
