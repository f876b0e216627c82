#include "client/local_cluster.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/time.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kStopGrace = absl::Seconds(5);
constexpr int kMaxRestarts = 20;
constexpr int kOwnerOnly = 0600;

}  // namespace

LocalCluster::LocalCluster(Options options, std::string executable, TempDir folder)
    : options_(std::move(options)), executable_(std::move(executable)), folder_(std::move(folder)) {
  tracker_ = MakeDaemon("tracker", {});
  scheduler_ =
      MakeDaemon("scheduler", {"--db", options_.db, "--exclusive-phases", "--unfinished", "none"});
  builder_ = MakeDaemon("builder", {"--jobs", fmt::format("{}", options_.builder_jobs)});
  if (options_.allow_faults) builder_.child.flags().push_back("--allow-faults");
  // Somebody waits for this machine's only device, however it is.
  runner_ =
      MakeDaemon("runner", {"--device", options_.device, "--threads",
                            fmt::format("{}", options_.runner_threads), "--canary-seconds", "0"});
}

LocalCluster::Daemon LocalCluster::MakeDaemon(const std::string& name,
                                              std::vector<std::string> flags) const {
  DaemonChild::Options child;
  child.executable = executable_;
  child.daemon = name;
  child.flags = {"--log-level", options_.log_level, "--secret-file",
                 secret_path(), "--http-port",      "off"};
  child.flags.insert(child.flags.end(), flags.begin(), flags.end());
  child.port_file = folder_.Join(name + ".port");
  child.log =
      JoinPath(options_.log_folder.empty() ? folder_.path() : options_.log_folder, name + ".log");
  return {DaemonChild(std::move(child))};
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
  KILN_RETURN_IF_ERROR(c.tracker_.child.Launch());
  KILN_RETURN_IF_ERROR(c.tracker_.child.WaitUntilServes(interrupted));
  const std::initializer_list<Daemon*> others = {&c.scheduler_, &c.builder_, &c.runner_};
  for (Daemon* daemon : others) {
    std::vector<std::string>& flags = daemon->child.flags();
    flags.insert(flags.end(), {"--tracker", c.tracker_.child.Address()});
    KILN_RETURN_IF_ERROR(daemon->child.Launch());
  }
  for (Daemon* daemon : others) {
    KILN_RETURN_IF_ERROR(daemon->child.WaitUntilServes(interrupted));
  }
  c.scheduler_address_ = c.scheduler_.child.Address();
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
  std::vector<std::string>& flags = scheduler_.child.flags();
  *std::next(std::find(flags.begin(), flags.end(), "--unfinished")) =
      "not:" + absl::StrJoin(left_alone_, ",");
}

Status LocalCluster::Supervise(const std::function<void(const std::string&)>& notice) {
  for (Daemon* daemon : {&tracker_, &scheduler_, &builder_, &runner_}) {
    DaemonChild& child = daemon->child;
    if (!child.launched() || child.Running()) continue;
    KILN_ASSIGN_OR_RETURN(const ExitStatus exit, child.Exit());
    if (++daemon->restarts > kMaxRestarts) return child.Ended(exit);
    notice(fmt::format("the {} ended ({}); starting it again", child.options().daemon,
                       exit.ToString()));
    KILN_RETURN_IF_ERROR(child.Launch());
    KILN_RETURN_IF_ERROR(child.WaitUntilServes([] { return false; }));
  }
  return OkStatus();
}

void LocalCluster::Stop() {
  StopInOrder(scheduler_.child, {&builder_.child, &runner_.child}, tracker_.child, kStopGrace);
}

}  // namespace kiln::client
