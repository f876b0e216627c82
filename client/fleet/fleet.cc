#include "client/fleet/fleet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text/counted.h"

namespace kiln::client {
namespace {

std::string_view Noun(v1::WorkerKind kind) { return kind == v1::RUNNER ? "runner" : "builder"; }

// Returns "runner 17", or "runners 17, 18".
std::string Named(v1::WorkerKind kind, const std::vector<int64_t>& jobs) {
  return fmt::format("{}{} {}", Noun(kind), jobs.size() == 1 ? "" : "s", fmt::join(jobs, ", "));
}

// Returns the log of one job.
std::string LogOf(std::string log_file, int64_t job) {
  const size_t at = log_file.find("%j");
  if (at != std::string::npos) log_file.replace(at, 2, fmt::format("{}", job));
  return log_file;
}

}  // namespace

struct Fleet::Kind {
  Kind(const FleetKindOptions& of, double longest_s) : options(of), history(longest_s) {}

  // Returns why workers are started or ended: "3 slots are wanted, 1 of 8 runners is there".
  std::string Reason(const FleetView& view) const {
    return fmt::format("{} {} wanted, {} {} there, {} at most", Counted(view.wanted_slots, "slot"),
                       IsOrAre(view.wanted_slots),
                       Counted(static_cast<int64_t>(view.jobs.size()), Noun(options.kind)),
                       IsOrAre(static_cast<int64_t>(view.jobs.size())), options.limits.most);
  }

  const FleetKindOptions& options;
  DemandHistory history;
  SubmitPause pause;
  std::set<std::string> announced_keys = {};
  std::map<int64_t, KnownJob> known = {};
};

Fleet::Fleet(FleetOptions options, SlurmCluster& cluster, FarmQueue& farm, Clock& clock,
             std::function<void(const std::string&)> print)
    : options_(std::move(options)),
      cluster_(cluster),
      farm_(farm),
      clock_(clock),
      print_(std::move(print)) {
  const double longest_s = std::max(options_.grow_after_s, options_.shrink_after_s);
  for (const FleetKindOptions& kind : options_.kinds) {
    kinds_.push_back(std::make_unique<Kind>(kind, longest_s));
  }
}

Fleet::~Fleet() = default;

void Fleet::Tick() {
  StatusOr<Look> look = LookAround();
  if (!look.ok()) {
    for (const auto& kind : kinds_) kind->history.Clear();
    return;
  }
  nothing_left_ = true;
  for (const auto& kind : kinds_) TickKind(*look, *kind);
}

StatusOr<Fleet::Look> Fleet::LookAround() {
  auto farm = farm_.List();
  Tell("the farm", farm.status());
  KILN_RETURN_IF_ERROR(farm.status());
  std::vector<std::string> names;
  for (const auto& kind : kinds_) names.push_back(SlurmJobName(options_.name, kind->options.kind));
  auto jobs = cluster_.List(names);
  Tell("Slurm's queue", jobs.status());
  KILN_RETURN_IF_ERROR(jobs.status());
  return Look{*std::move(farm), *std::move(jobs)};
}

void Fleet::TickKind(const Look& look, Kind& kind) {
  FleetKeys keys = kind.options.keys;
  keys.announced = kind.announced_keys;
  FleetView view = ViewFleet(options_.name, kind.options.kind, look.farm, look.jobs, keys);
  kind.announced_keys = view.announced;
  for (FleetJob& job : view.jobs) {
    job.cancelled = cancelled_.contains(job.id);
    const bool left = !job.cancelled && job.workers != FleetWorkerState::kStopped;
    if (left) nothing_left_ = false;
  }
  kind.history.Add(clock_.MonotonicSeconds(), view.wanted_slots);
  Follow(view, look.jobs, kind);
  Do(Plan(view, kind), view, look, kind);
}

void Fleet::Follow(const FleetView& view, const std::vector<SlurmJob>& jobs, Kind& kind) {
  std::map<int64_t, KnownJob> before;
  before.swap(kind.known);
  for (const FleetJob& job : view.jobs) {
    const auto earlier = before.find(job.id);
    if (earlier != before.end()) kind.known[job.id] = earlier->second;
    before.erase(job.id);
    const auto listed =
        std::ranges::find_if(jobs, [&](const SlurmJob& slurm) { return slurm.id == job.id; });
    FollowJob(job, listed->detail, kind);
  }
  for (const auto& [id, job] : before) FollowLost(id, job, kind);
}

void Fleet::FollowJob(const FleetJob& job, const std::string& detail, Kind& kind) {
  const bool is_new = !kind.known.contains(job.id);
  KnownJob& known = kind.known[job.id];
  const bool changed = is_new || known.state != job.state;
  const std::string name = Named(kind.options.kind, {job.id});
  if (job.state == SlurmJobState::kPending && !job.cancelled) {
    if (!is_new && changed) print_(fmt::format("{} was requeued by Slurm", name));
    // Slurm gives the reason None until it has looked at the job.
    const bool says_why = !detail.empty() && detail != "None";
    if (says_why && (changed || known.detail != detail)) {
      print_(fmt::format("{} waits: {}", name, detail));
    }
    known.announced = false;
  }
  if (job.state == SlurmJobState::kRunning && changed) {
    print_(fmt::format("{} runs on {}", name, detail));
  }
  const bool announced =
      job.state == SlurmJobState::kRunning && job.workers != FleetWorkerState::kAbsent;
  if (announced && !known.announced) {
    print_(fmt::format("{} has announced itself", name));
    kind.pause.Reset();
  }
  known.announced = known.announced || announced;
  known.state = job.state;
  known.detail = detail;
}

void Fleet::FollowLost(int64_t id, const KnownJob& job, Kind& kind) {
  const std::string name = Named(kind.options.kind, {id});
  if (cancelled_.erase(id) > 0) {
    print_(fmt::format("{} has ended", name));
  } else if (job.announced) {
    print_(fmt::format("{} is gone: Slurm, a person or the worker ended it; {} says more", name,
                       LogOf(kind.options.log_file, id)));
  } else {
    const double pause_s = kind.pause.Begin(clock_.MonotonicSeconds());
    print_(
        fmt::format("{} is gone, and no worker of it was seen; read {} and `scontrol show job "
                    "{}`; no {} is started for {:.0f} s",
                    name, LogOf(kind.options.log_file, id), id, Noun(kind.options.kind), pause_s));
  }
}

FleetPlan Fleet::Plan(const FleetView& view, const Kind& kind) const {
  if (ending_) return PlanFleet(view.jobs, {}, {}, kind.options.slots);
  const FleetLimits& limits = kind.options.limits;
  const FleetDemand demand = {
      .lasting = kind.history.Least(options_.grow_after_s),
      .peak = kind.history.Greatest(options_.shrink_after_s, limits.most * kind.options.slots)};
  return PlanFleet(view.jobs, demand, limits, kind.options.slots);
}

void Fleet::Do(const FleetPlan& plan, const FleetView& view, const Look& look, Kind& kind) {
  Ask(plan.resume, v1::WORKER_SERVES, view, look, kind);
  Ask(plan.drain, v1::WORKER_DRAINS, view, look, kind);
  Cancel(plan.cancel, view, kind);
  if (!kind.pause.Lasts(clock_.MonotonicSeconds())) Submit(plan.submit, view, kind);
}

void Fleet::Submit(int count, const FleetView& view, Kind& kind) {
  std::vector<int64_t> submitted;
  Status refused;
  for (int i = 0; i < count && refused.ok(); ++i) {
    const auto id = cluster_.Submit(kind.options.request);
    refused = id.status();
    if (!id.ok()) break;
    submitted.push_back(*id);
    // A job that is gone at the next look has failed.
    kind.known[*id] = {};
  }
  if (!submitted.empty()) {
    print_(fmt::format("submitted {}: {}", Named(kind.options.kind, submitted), kind.Reason(view)));
  }
  if (!refused.ok()) {
    const double pause_s = kind.pause.Begin(clock_.MonotonicSeconds());
    print_(fmt::format("Slurm took no {}: {}; it is tried again in {:.0f} s",
                       Noun(kind.options.kind), Message(refused), pause_s));
  }
}

void Fleet::Ask(const std::vector<int64_t>& jobs, v1::WorkerMode mode, const FleetView& view,
                const Look& look, const Kind& kind) {
  const bool drains = mode == v1::WORKER_DRAINS;
  for (const int64_t job : jobs) {
    Status asked;
    for (const std::string& worker : WorkersOfJob(options_.name, job, look.farm)) {
      const Status status = farm_.SetMode(worker, mode, drains ? DrainReason(options_.name) : "");
      // A worker that is gone meanwhile needs no mode.
      if (status.code() != StatusCode::kNotFound) asked.Update(status);
    }
    Tell(drains ? "the drain of a worker" : "the return of a worker", asked);
    if (!asked.ok()) continue;
    print_(fmt::format("{} {}: {}", Named(kind.options.kind, {job}),
                       drains ? "drains" : "serves again", kind.Reason(view)));
  }
}

void Fleet::Cancel(const std::vector<int64_t>& jobs, const FleetView& view, const Kind& kind) {
  if (jobs.empty()) return;
  const Status cancelled = cluster_.Cancel(jobs);
  Tell("scancel", cancelled);
  if (!cancelled.ok()) return;
  cancelled_.insert(jobs.begin(), jobs.end());
  print_(fmt::format("cancelled {}: {}", Named(kind.options.kind, jobs), kind.Reason(view)));
}

void Fleet::Tell(std::string_view what, const Status& status) {
  const auto told = troubles_.find(what);
  if (status.ok()) {
    if (told == troubles_.end()) return;
    print_(fmt::format("{} answers again", what));
    troubles_.erase(told);
    return;
  }
  std::string text(Message(status));
  if (told != troubles_.end() && told->second == text) return;
  print_(fmt::format("{} has a trouble, and the fleet changes nothing until it is over: {}", what,
                     text));
  troubles_[std::string(what)] = std::move(text);
}

}  // namespace kiln::client
