#include "client/local_cluster.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kStopGrace = absl::Seconds(5);
constexpr int kMaxRestarts = 20;
constexpr int kOwnerOnly = 0600;

}  // namespace

LocalCluster::LocalCluster(Options options, std::string executable, TempDir folder)
    : options_(std::move(options)), executable_(std::move(executable)), folder_(std::move(folder)) {
  const std::vector<int>& cores = options_.places.others;
  tracker_ = MakeDaemon("tracker", cores, {});
  scheduler_ = MakeDaemon("scheduler", cores,
                          {"--db", options_.db, "--exclusive-phases", "--unfinished", "none"});
  builder_ = MakeDaemon("builder", cores, {"--jobs", fmt::format("{}", options_.builder_jobs)});
  if (options_.allow_faults) builder_.child.flags().push_back("--allow-faults");
  const std::vector<LocalPlaces::Runner>& places = options_.places.runners;
  for (const LocalPlaces::Runner& place : places) {
    AddRunner(places.size() == 1 ? "runner" : "runner " + place.device.label, place.device.device,
              place.cores);
  }
  if (places.empty()) AddRunner("runner", options_.device, {});
}

void LocalCluster::AddRunner(const std::string& name, const std::string& device,
                             std::vector<int> cores) {
  // Somebody waits for this machine's devices, however they are.
  runners_.push_back(
      MakeDaemon(name, std::move(cores),
                 {"--device", device, "--threads", fmt::format("{}", options_.runner_threads),
                  "--canary-seconds", "0"}));
}

LocalCluster::Daemon LocalCluster::MakeDaemon(const std::string& name, std::vector<int> cores,
                                              std::vector<std::string> flags) const {
  DaemonChild::Options child;
  child.executable = executable_;
  child.daemon = name.substr(0, name.find(' '));
  child.flags = {"--log-level", options_.log_level, "--secret-file",
                 secret_path(), "--http-port",      "off"};
  child.flags.insert(child.flags.end(), flags.begin(), flags.end());
  const std::string file = absl::StrReplaceAll(name, {{" ", "-"}, {":", "-"}});
  child.port_file = folder_.Join(file + ".port");
  child.log =
      JoinPath(options_.log_folder.empty() ? folder_.path() : options_.log_folder, file + ".log");
  child.cores = std::move(cores);
  return {.name = name, .child = DaemonChild(std::move(child))};
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
  std::vector<Daemon*> others = {&c.scheduler_, &c.builder_};
  for (Daemon& runner : c.runners_) others.push_back(&runner);
  for (Daemon* daemon : others) {
    std::vector<std::string>& flags = daemon->child.flags();
    flags.insert(flags.end(), {"--tracker", c.tracker_.child.Address()});
    KILN_RETURN_IF_ERROR(daemon->child.Launch());
  }
  KILN_RETURN_IF_ERROR(c.scheduler_.child.WaitUntilServes(interrupted));
  KILN_RETURN_IF_ERROR(c.builder_.child.WaitUntilServes(interrupted));
  KILN_RETURN_IF_ERROR(c.StartRunners(interrupted));
  c.scheduler_address_ = c.scheduler_.child.Address();
  return cluster;
}

Status LocalCluster::StartRunners(const std::function<bool()>& interrupted) {
  for (size_t i = 0; i < runners_.size();) {
    const Status serves = runners_[i].child.WaitUntilServes(interrupted);
    if (serves.ok()) {
      ++i;
      continue;
    }
    if (serves.code() == absl::StatusCode::kCancelled || runners_.size() == 1) return serves;
    notes_.push_back(fmt::format("the {} does not start and is left out: {}", runners_[i].name,
                                 Message(serves)));
    runners_[i].child.Stop(kStopGrace);
    runners_.erase(runners_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return OkStatus();
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

Status LocalCluster::Revive(Daemon& daemon, const std::function<void(const std::string&)>& notice) {
  DaemonChild& child = daemon.child;
  KILN_ASSIGN_OR_RETURN(const ExitStatus exit, child.Exit());
  if (++daemon.restarts > kMaxRestarts) return child.Ended(exit);
  notice(fmt::format("the {} ended ({}); starting it again", daemon.name, exit.ToString()));
  KILN_RETURN_IF_ERROR(child.Launch());
  return child.WaitUntilServes([] { return false; });
}

Status LocalCluster::Supervise(const std::function<void(const std::string&)>& notice) {
  for (Daemon* daemon : {&tracker_, &scheduler_, &builder_}) {
    if (!daemon->child.launched() || daemon->child.Running()) continue;
    KILN_RETURN_IF_ERROR(Revive(*daemon, notice));
  }
  for (size_t i = 0; i < runners_.size();) {
    Daemon& runner = runners_[i];
    const bool fine = !runner.child.launched() || runner.child.Running();
    const Status revived = fine ? OkStatus() : Revive(runner, notice);
    if (revived.ok()) {
      ++i;
      continue;
    }
    if (runners_.size() == 1) return revived;
    notice(fmt::format("the {} is given up, the others go on: {}", runner.name, Message(revived)));
    runner.child.Stop(kStopGrace);
    runners_.erase(runners_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return OkStatus();
}

void LocalCluster::Stop() {
  std::vector<DaemonChild*> workers = {&builder_.child};
  for (Daemon& runner : runners_) workers.push_back(&runner.child);
  StopInOrder(scheduler_.child, workers, tracker_.child, kStopGrace);
}

}  // namespace kiln::client
