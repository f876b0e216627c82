#include "client/local_cluster.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/errno_status.h"
#include "base/file/fd.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(60);
constexpr absl::Duration kPollPause = absl::Milliseconds(5);
constexpr absl::Duration kStopGrace = absl::Seconds(5);
constexpr int kMaxRestarts = 20;
constexpr char kLoopback[] = "127.0.0.1:";
constexpr int kOwnerOnly = 0600;

// Returns the last line that is not empty.
std::string LastLine(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

Status BecomeClusterChild(const std::string& log_path) {
  DieWithParent();
  if (log_path == "-") return OkStatus();
  const UniqueFd log(open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!log.valid()) return ErrnoStatus(errno, "cannot write {}", log_path);
  if (dup2(log.get(), STDOUT_FILENO) < 0 || dup2(log.get(), STDERR_FILENO) < 0) {
    return ErrnoStatus(errno, "dup2");
  }
  return OkStatus();
}

LocalCluster::LocalCluster(Options options, std::string executable, TempDir folder)
    : options_(std::move(options)), executable_(std::move(executable)), folder_(std::move(folder)) {
  tracker_.name = "tracker";
  scheduler_.name = "scheduler";
  scheduler_.flags = {"--db", options_.db, "--exclusive-phases", "--unfinished", "none"};
  builder_.name = "builder";
  builder_.flags = {"--jobs", fmt::format("{}", options_.builder_jobs)};
  if (options_.allow_faults) builder_.flags.push_back("--allow-faults");
  runner_.name = "runner";
  runner_.flags = {"--device", options_.device, "--threads",
                   fmt::format("{}", options_.runner_threads)};
}

LocalCluster::~LocalCluster() { Stop(); }

StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Start(
    const Options& options, const std::function<bool()>& interrupted) {
  KILN_ASSIGN_OR_RETURN(std::string executable, CurrentExecutable());
  KILN_ASSIGN_OR_RETURN(TempDir folder, TempDir::Make("kiln-cluster"));
  if (!options.log_folder.empty()) KILN_RETURN_IF_ERROR(MakeDirs(options.log_folder));
  std::unique_ptr<LocalCluster> cluster(
      new LocalCluster(options, std::move(executable), std::move(folder)));
  LocalCluster& c = *cluster;
  KILN_RETURN_IF_ERROR(WriteFileAtomically(c.secret_path(), c.secret_.text() + "\n", kOwnerOnly));
  KILN_RETURN_IF_ERROR(c.Launch(c.tracker_));
  KILN_RETURN_IF_ERROR(c.WaitForPort(c.tracker_, interrupted));
  for (Daemon* daemon : {&c.scheduler_, &c.builder_, &c.runner_}) {
    daemon->flags.insert(daemon->flags.end(), {"--tracker", kLoopback + c.tracker_.port});
    KILN_RETURN_IF_ERROR(c.Launch(*daemon));
  }
  for (Daemon* daemon : {&c.scheduler_, &c.builder_, &c.runner_}) {
    KILN_RETURN_IF_ERROR(c.WaitForPort(*daemon, interrupted));
  }
  c.scheduler_address_ = kLoopback + c.scheduler_.port;
  return cluster;
}

void LocalCluster::LeaveAlone(std::set<std::string> job_ids) {
  left_alone_ = std::move(job_ids);
  SetUnfinished();
}

void LocalCluster::GoOnWith(const std::string& job_id) {
  left_alone_.erase(job_id);
  SetUnfinished();
}

void LocalCluster::SetUnfinished() {
  std::vector<std::string>& flags = scheduler_.flags;
  *std::next(std::find(flags.begin(), flags.end(), "--unfinished")) =
      "not:" + absl::StrJoin(left_alone_, ",");
}

std::string LocalCluster::AddressOf(const Daemon& daemon) { return kLoopback + daemon.port; }

std::string LocalCluster::LogPath(const Daemon& daemon) const {
  const std::string& folder = options_.log_folder.empty() ? folder_.path() : options_.log_folder;
  return JoinPath(folder, daemon.name + ".log");
}

std::string LocalCluster::PortPath(const Daemon& daemon) const {
  return folder_.Join(daemon.name + ".port");
}

Status LocalCluster::Launch(Daemon& daemon) {
  SubprocessOptions options;
  options.argv = {
      executable_,        kClusterChild,    LogPath(daemon),
      daemon.name,        "--listen",       kLoopback + (daemon.port.empty() ? "0" : daemon.port),
      "--port-file",      PortPath(daemon), "--log-level",
      options_.log_level, "--secret-file",  secret_path()};
  options.argv.insert(options.argv.end(), daemon.flags.begin(), daemon.flags.end());
  options.output = SubprocessOptions::Stream::kNull;
  KILN_RETURN_IF_ERROR(RemoveFile(PortPath(daemon)));
  KILN_ASSIGN_OR_RETURN(Subprocess process, Subprocess::Spawn(options));
  daemon.process = std::make_unique<Subprocess>(std::move(process));
  return OkStatus();
}

Status LocalCluster::WaitForPort(Daemon& daemon, const std::function<bool()>& interrupted) {
  const absl::Time deadline = absl::Now() + kStartTimeout;
  while (!FileExists(PortPath(daemon))) {
    if (interrupted()) return Cancelled("interrupted before the cluster was up");
    if (!daemon.process->Running()) {
      KILN_ASSIGN_OR_RETURN(const ExitStatus exit, daemon.process->Wait());
      return Ended(daemon, exit);
    }
    if (absl::Now() > deadline) {
      return DeadlineExceeded("the {} did not start within {} s", daemon.name,
                              absl::ToInt64Seconds(kStartTimeout));
    }
    absl::SleepFor(kPollPause);
  }
  KILN_ASSIGN_OR_RETURN(const std::string text, ReadFile(PortPath(daemon), 64));
  daemon.port = text.substr(0, text.find('\n'));
  return OkStatus();
}

Status LocalCluster::Ended(const Daemon& daemon, const ExitStatus& exit) const {
  const auto log = ReadFile(LogPath(daemon));
  std::string said = log.ok() ? LastLine(*log) : std::string();
  if (said.starts_with(daemon.name + ": ")) said.erase(0, daemon.name.size() + 2);
  return Internal("the {} ended ({}){}{}", daemon.name, exit.ToString(), said.empty() ? "" : ": ",
                  said);
}

Status LocalCluster::Supervise(const std::function<void(const std::string&)>& notice) {
  for (Daemon* daemon : {&tracker_, &scheduler_, &builder_, &runner_}) {
    if (daemon->process == nullptr || daemon->process->Running()) continue;
    KILN_ASSIGN_OR_RETURN(const ExitStatus exit, daemon->process->Wait());
    const Status ended = Ended(*daemon, exit);
    if (++daemon->restarts > kMaxRestarts) return ended;
    notice(fmt::format("the {} ended ({}); starting it again", daemon->name, exit.ToString()));
    KILN_RETURN_IF_ERROR(Launch(*daemon));
    KILN_RETURN_IF_ERROR(WaitForPort(*daemon, [] { return false; }));
  }
  return OkStatus();
}

void LocalCluster::Stop() {
  // The scheduler ends first: it gives its leases back to a tracker that still listens.
  for (Daemon* daemon : {&scheduler_, &builder_, &runner_, &tracker_}) {
    if (daemon->process == nullptr) continue;
    if (daemon == &builder_ && runner_.process != nullptr) runner_.process->Kill(SIGTERM);
    (void)daemon->process->Stop(kStopGrace);
    daemon->process.reset();
  }
}

}  // namespace kiln::client
