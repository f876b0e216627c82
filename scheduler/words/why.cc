#include "scheduler/words/why.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text/closest_names.h"
#include "base/text/counted.h"
#include "compiler/target/target.h"
#include "proto/job_defaults.h"
#include "scheduler/words/format.h"
#include "scheduler/words/job_estimate.h"
#include "scheduler/words/job_queue.h"
#include "search/tuning/estimate_phase.h"

namespace kiln {
namespace {

constexpr size_t kMaxDetails = 8;
constexpr size_t kMaxKeys = 12;
// A share of failures says something from so many trials on.
constexpr uint32_t kLeastTrials = 8;
// A job whose devices are busy for this share of the time does not wait for builds.
constexpr double kBusyDevice = 0.9;
// The target whose programs are not run, so that it has no reference.
constexpr std::string_view kNull = "null";

// The workers of one kind that have a key.
struct Serving {
  std::vector<const v1::WorkerState*> workers;
  // Workers among them that take no trials now.
  std::vector<const v1::WorkerState*> stopped;
  // Slots of the others.
  uint32_t slots = 0, busy = 0;
  uint32_t pending = 0;

  bool all_busy() const { return slots > 0 && busy >= slots; }
  bool all_stopped() const { return !stopped.empty() && stopped.size() == workers.size(); }
};

// `keeps_leases`: the job may hold a slot of a worker that is cordoned.
Serving ServingOf(const v1::ListReply& there, v1::WorkerKind kind, std::string_view key,
                  bool keeps_leases) {
  Serving serving;
  for (int i = 0; i < there.workers_size(); ++i) {
    const v1::WorkerState& worker = there.workers(i);
    if (worker.kind() != kind || std::ranges::count(worker.keys(), key) == 0) continue;
    const uint32_t busy = i < there.busy_slots_size() ? there.busy_slots(i) : 0;
    const bool is_kept = keeps_leases && worker.mode() == v1::WORKER_CORDONED && busy > 0;
    serving.workers.push_back(&worker);
    if (worker.mode() != v1::WORKER_SERVES && !is_kept) {
      serving.stopped.push_back(&worker);
      continue;
    }
    serving.slots += worker.slots();
    serving.busy += busy;
  }
  for (const v1::KeyState& state : there.keys()) {
    if (state.kind() == kind && state.key() == key) serving.pending = state.pending();
  }
  return serving;
}

// Returns the key of the builders of a job: the kind of its target.
std::string TargetKey(const v1::JobStatus& job) {
  if (job.tasks().empty()) return {};
  const std::string& text = job.tasks(0).spec().target();
  const auto parsed = target::ParseTarget(text);
  return parsed.ok() ? std::string(parsed->kind->name) : text.substr(0, text.find(' '));
}

// Returns the key of the runners of a job.
std::string DeviceKey(const v1::JobStatus& job) {
  return job.spec().device().empty() ? TargetKey(job) : job.spec().device();
}

// Returns why the worker takes no trials: it is quarantined or outside of its hours by itself, and
// everything else is an operator's wish.
WhyKind KindOfStop(const v1::WorkerState& worker) {
  if (worker.mode() == v1::WORKER_QUARANTINED) return WhyKind::kQuarantined;
  const bool by_itself =
      worker.mode() == v1::WORKER_PAUSED && worker.asked_mode() != v1::WORKER_PAUSED;
  return by_itself ? WhyKind::kOutsideHours : WhyKind::kStopped;
}

// Returns "127.0.0.1:9490: paused by ada".
std::string WorkerLine(const v1::WorkerState& worker) {
  return fmt::format("{}: {}", worker.address(),
                     worker.mode_reason().empty() ? "it gives no reason" : worker.mode_reason());
}

// Returns "the only runner", "all 3 runners" or "2 of 3 runners", with a verb behind it "... is" or
// "... are".
std::string CountOf(size_t some, size_t all, std::string_view noun, bool verb) {
  if (all == 1) return fmt::format("the only {}{}", noun, verb ? " is" : "");
  const std::string_view is = !verb ? "" : some == 1 ? " is" : " are";
  if (some == all) return fmt::format("all {} {}s{}", all, noun, is);
  return fmt::format("{} of {} {}s{}", some, all, noun, is);
}

// Cuts the list to what fits on a screen.
void Limit(std::vector<std::string>& lines, std::string_view noun) {
  if (lines.size() <= kMaxDetails) return;
  const size_t more = lines.size() - (kMaxDetails - 1);
  lines.resize(kMaxDetails - 1);
  lines.push_back(
      fmt::format("and {}", Counted(static_cast<int64_t>(more), "more " + std::string(noun))));
}

std::string UserOf(const v1::JobStatus& job) {
  return job.spec().user().empty() ? "no user" : job.spec().user();
}

// Returns "job 4f3a of ann, priority 0, 12/64 trials: ends in about 12 min".
std::string JobLine(const v1::JobStatus& job, const std::string& remark) {
  return fmt::format("job {} of {}, priority {}, {} trials{}{}", job.id(), UserOf(job),
                     job.spec().priority(), TrialsText(job), remark.empty() ? "" : ": ", remark);
}

// Returns the running jobs whose device is one of these workers'.
std::vector<const v1::JobStatus*> HoldersOf(const std::vector<const v1::WorkerState*>& workers,
                                            const v1::JobStatus& but,
                                            const std::vector<v1::JobStatus>& all) {
  std::vector<const v1::JobStatus*> holders;
  for (const v1::JobStatus* const job : RunningJobs(all)) {
    if (job->id() == but.id() || job->device().empty()) continue;
    const bool holds = std::ranges::any_of(workers, [&](const v1::WorkerState* worker) {
      return worker->device() == job->device() ||
             std::ranges::count(worker->keys(), job->device()) > 0;
    });
    if (holds) holders.push_back(job);
  }
  // A job that waits may have given its device back.
  const auto works = [](const v1::JobStatus* job) { return job->waiting_for_workers() == 0; };
  if (std::ranges::any_of(holders, works)) std::erase_if(holders, std::not_fn(works));
  return holders;
}

// Finds the reasons of one job.
class Finder {
 public:
  Finder(const v1::JobStatus& job, const FarmAnswers& farm) : job_(job), farm_(farm) {}

  std::vector<Reason> Find() {
    switch (job_.state()) {
      case v1::SUCCEEDED:
        Add(WhyKind::kSucceeded, {{"ending", EndingOrMessage()}});
        break;
      case v1::FAILED:
        Add(WhyKind::kFailed, {{"message", MessageOr("no reason is known")}});
        break;
      case v1::CANCELLED:
        Add(WhyKind::kCancelled, {{"trials", Counted(job_.trials_done(), "trial")}});
        break;
      case v1::PAUSED:
        Add(WhyKind::kPaused, {{"trials", Counted(job_.trials_done(), "trial")}});
        break;
      case v1::QUEUED:
        OfQueued();
        break;
      default:
        OfRunning();
    }
    return std::move(reasons_);
  }

 private:
  void Add(WhyKind kind, WhyValues values, std::vector<std::string> details = {}) {
    values.emplace_back("job", job_.id());
    values.emplace_back("user", UserOf(job_));
    const WhyWords& words = WordsOf(kind);
    reasons_.push_back({.kind = kind,
                        .text = Filled(words.text, values),
                        .details = std::move(details),
                        .remedy = Filled(words.remedy, values)});
  }

  std::string MessageOr(std::string_view other) const {
    return job_.message().empty() ? std::string(other) : job_.message();
  }
  std::string EndingOrMessage() const {
    const std::string ending = EndingText(job_);
    return ending.empty() ? MessageOr(Counted(job_.trials_done(), "trial")) : ending;
  }

  void OfQueued() {
    if (WaitsForProcess(job_)) {
      // The rest of the phase says what helps.
      Add(WhyKind::kProcess, {{"phase", job_.phase().substr(0, job_.phase().find(';'))}});
    } else if (WaitsForResults(job_)) {
      Add(WhyKind::kResults, {{"phase", job_.phase()}}, TunersOf(job_));
      return;
    } else if (!job_.message().empty()) {
      Add(WhyKind::kWaits, {{"message", job_.message()}});
    } else {
      OfPlace();
    }
    LookForDevice();
    LookForStopped(v1::RUNNER, DeviceKey(job_));
  }

  // Returns a line for each job whose results this one waits for.
  std::vector<std::string> TunersOf(const v1::JobStatus& job) const {
    std::set<std::string> tuners;
    for (const v1::TaskStatus& task : job.tasks()) tuners.insert(task.tuned_by_job());
    std::vector<std::string> lines;
    for (const v1::JobStatus& other : farm_.jobs) {
      if (!tuners.contains(other.id())) continue;
      const std::string ends = EndsText(SecondsToEnd(other));
      lines.push_back(JobLine(other, ends.empty() ? "tunes it" : "tunes it, " + ends));
    }
    Limit(lines, "job");
    return lines;
  }

  void OfPlace() {
    const auto running = RunningJobs(farm_.jobs);
    const auto before = JobsBefore(job_, farm_.jobs);
    if (running.empty() && before.empty()) {
      Add(WhyKind::kNext, {});
      return;
    }
    const auto queued = std::ranges::count_if(farm_.jobs, [&](const v1::JobStatus& other) {
      return other.id() != job_.id() && WaitsForTurn(other);
    });
    int32_t highest = job_.spec().priority();
    std::vector<std::string> details;
    for (const v1::JobStatus* const other : before) {
      highest = std::max(highest, other->spec().priority());
      const bool urgent = other->spec().priority() > job_.spec().priority();
      details.push_back(JobLine(*other, urgent ? "before it by its priority" : "came earlier"));
    }
    for (const v1::JobStatus* const other : running) {
      const std::string ends = EndsText(SecondsToEnd(*other));
      details.push_back(JobLine(*other, ends.empty() ? "runs" : "runs, " + ends));
    }
    Limit(details, "job");
    Add(WhyKind::kQueue,
        {{"place", fmt::format("{}", before.size() + 1)},
         {"queued", fmt::format("{}", queued + 1)},
         {"running", Counted(static_cast<int64_t>(running.size()), "job")},
         {"highest", fmt::format("{}", highest)}},
        std::move(details));
  }

  void OfRunning() {
    if (job_.waiting_for_workers() != 0) {
      LookForLimit();
      if (reasons_.empty()) {
        LookForDevice();
        LookForStopped(v1::RUNNER, DeviceKey(job_));
      }
      LookForBuilders();
      if (reasons_.empty()) LookForBusyDevices();
      if (reasons_.empty()) {
        Add(WhyKind::kWaits, {{"message", MessageOr("it waits for a worker")}});
      }
    } else if (!job_.message().empty()) {
      Add(WhyKind::kWaits, {{"message", job_.message()}});
    } else {
      OfWork();
    }
    LookForFailures();
  }

  // The job has its device, and works.
  void OfWork() {
    LookForBuilders();
    const bool searches = job_.phase().empty() || IsEstimatePhase(job_.phase());
    if (!searches) {
      Add(WhyKind::kLastReadings, {{"phase", job_.phase()}}, Notices());
    } else if (job_.trials_done() == 0 && TargetKey(job_) != kNull) {
      const double limit_s = job_.spec().options().reference_limit_s();
      Add(WhyKind::kReference,
          {{"limit", fmt::format("{:.4g}", limit_s > 0 ? limit_s : kDefaultReferenceLimit_s)}},
          Notices());
    } else {
      OfPace();
    }
  }

  void OfPace() {
    std::vector<std::string> details = LimitsOfDevices();
    const bool is_limited = !details.empty();
    if (!is_limited && !reasons_.empty()) return;
    const std::string pace = PaceText(job_);
    details.insert(details.end(), job_.notices().begin(), job_.notices().end());
    for (int i = 0; i < job_.tasks_size(); ++i) {
      if (std::string tuned_by = TunedByText(job_, i); !tuned_by.empty())
        details.push_back(std::move(tuned_by));
    }
    Limit(details, "notice");
    Add(is_limited ? WhyKind::kShare : WhyKind::kRunning,
        {{"pace", pace.empty() ? "no trial is done yet" : pace}}, std::move(details));
  }

  // Returns what the runners of the job's device say of how they serve; empty if one of them says
  // nothing.
  std::vector<std::string> LimitsOfDevices() const {
    std::vector<std::string> limits;
    if (!farm_.workers.has_value()) return limits;
    const Serving serving = Known(v1::RUNNER, DeviceKey(job_));
    for (const v1::WorkerState* const worker : serving.workers) {
      if (worker->device() != job_.device() || worker->mode() != v1::WORKER_SERVES) continue;
      if (worker->mode_reason().empty()) return {};
      limits.push_back(WorkerLine(*worker));
    }
    return limits;
  }

  // The caller has looked whether the tracker has answered.
  Serving Known(v1::WorkerKind kind, std::string_view key) const {
    return ServingOf(*farm_.workers, kind, key, /*keeps_leases=*/!job_.device().empty());
  }

  // Says why none of the workers that have the key takes trials.
  void LookForStopped(v1::WorkerKind kind, const std::string& key) {
    if (!farm_.workers.has_value() || key.empty()) return;
    const Serving serving = Known(kind, key);
    if (!serving.all_stopped()) return;
    const bool is_runner = kind == v1::RUNNER;
    for (const WhyKind why : {WhyKind::kStopped, WhyKind::kQuarantined, WhyKind::kOutsideHours}) {
      std::vector<std::string> details;
      for (const v1::WorkerState* const worker : serving.stopped) {
        if (KindOfStop(*worker) == why) details.push_back(WorkerLine(*worker));
      }
      if (details.empty()) continue;
      const std::string count = CountOf(details.size(), serving.workers.size(),
                                        WorkerKindName(kind), why != WhyKind::kStopped);
      Limit(details, WorkerKindName(kind));
      Add(why, {{"device", is_runner ? "device" : "builder"}, {"key", key}, {"workers", count}},
          std::move(details));
    }
  }

  std::vector<std::string> Notices() const {
    std::vector<std::string> notices(job_.notices().begin(), job_.notices().end());
    Limit(notices, "notice");
    return notices;
  }

  void LookForDevice() {
    if (!farm_.workers.has_value()) return;
    const std::string key = DeviceKey(job_);
    if (key.empty() || !Known(v1::RUNNER, key).workers.empty()) return;
    std::set<std::string> there;
    for (const v1::WorkerState& worker : farm_.workers->workers()) {
      if (worker.kind() != v1::RUNNER) continue;
      there.insert(worker.keys().begin(), worker.keys().end());
    }
    std::vector<std::string> details;
    if (there.empty()) {
      details.push_back("no runner is there at all");
    } else {
      std::vector<std::string> keys(there.begin(), there.end());
      const std::vector<std::string> close = ClosestNames(key, keys);
      if (!close.empty()) details.push_back(fmt::format("close names: {}", fmt::join(close, ", ")));
      const size_t more = keys.size() - std::min(keys.size(), kMaxKeys);
      keys.resize(keys.size() - more);
      details.push_back(fmt::format("there are: {}{}", fmt::join(keys, ", "),
                                    more == 0 ? "" : fmt::format(", and {} more", more)));
    }
    Add(WhyKind::kNoDevice, {{"key", key}}, std::move(details));
  }

  void LookForBusyDevices() {
    if (!farm_.workers.has_value()) return;
    const std::string key = DeviceKey(job_);
    const Serving serving = Known(v1::RUNNER, key);
    if (!serving.all_busy()) return;
    const auto holders = HoldersOf(serving.workers, job_, farm_.jobs);
    std::vector<std::string> details;
    for (const v1::JobStatus* const holder : holders) {
      details.push_back(JobLine(*holder, EndsText(SecondsToEnd(*holder))));
    }
    // The job may have the busy device itself.
    if (details.empty() && !job_.device().empty()) return;
    if (details.empty())
      details.push_back("no job of this scheduler has one: another scheduler's do");
    Limit(details, "job");
    for (const v1::WorkerState* const worker : serving.stopped) {
      if (details.size() < kMaxDetails) details.push_back(WorkerLine(*worker));
    }
    Add(WhyKind::kBusy, {{"key", key}, {"slots", fmt::format("{}", serving.slots)}},
        std::move(details));
  }

  void LookForLimit() {
    // A job that had a device waits for builders as well, or has its device yet.
    if (!job_.device().empty()) return;
    for (const v1::UserShare& user : farm_.users) {
      if (user.name() != job_.spec().user()) continue;
      if (user.devices() == 0 || user.devices_now() < user.devices()) continue;
      std::vector<std::string> details;
      for (const v1::JobStatus* const other : RunningJobs(farm_.jobs)) {
        if (other->id() == job_.id() || other->spec().user() != user.name()) continue;
        details.push_back(JobLine(*other, EndsText(SecondsToEnd(*other))));
      }
      Limit(details, "job");
      Add(WhyKind::kDeviceLimit,
          {{"devices", Counted(user.devices_now(), "device")},
           {"limit", fmt::format("{}", user.devices())}},
          std::move(details));
    }
  }

  void LookForBuilders() {
    // A job builds once it has a device.
    if (!farm_.workers.has_value() || job_.device().empty()) return;
    const std::string key = TargetKey(job_);
    if (key.empty()) return;
    const Serving serving = Known(v1::BUILDER, key);
    std::vector<std::string> details;
    if (const std::string pace = PaceText(job_); !pace.empty()) details.push_back("pace: " + pace);
    if (serving.workers.empty()) {
      Add(WhyKind::kNoBuilder, {{"key", key}}, std::move(details));
    } else if (serving.all_stopped()) {
      LookForStopped(v1::BUILDER, key);
    } else if (serving.all_busy() && serving.pending > 0 &&
               job_.busy_share_last_minute() < kBusyDevice) {
      Add(WhyKind::kBuilders,
          {{"key", key},
           {"slots", Counted(serving.slots, "slot")},
           {"pending", Counted(serving.pending, "request") +
                           (serving.pending == 1 ? " waits for one" : " wait for")}},
          std::move(details));
    }
  }

  void LookForFailures() {
    if (job_.trials_done() < kLeastTrials || 2 * NumErrors(job_) < job_.trials_done()) return;
    Add(WhyKind::kFailing,
        {{"trials", Counted(job_.trials_done(), "trial")}, {"counts", ErrorCounts(job_)}});
  }

  const v1::JobStatus& job_;
  const FarmAnswers& farm_;
  std::vector<Reason> reasons_;
};

}  // namespace

std::vector<Reason> WhyOf(const v1::JobStatus& job, const FarmAnswers& farm) {
  return Finder(job, farm).Find();
}

std::string EstimateText(const v1::JobStatus& job, const FarmAnswers& farm) {
  if (job.state() == v1::QUEUED) return StartsText(SecondsToStart(job, farm.jobs));
  if (job.state() != v1::RUNNING) return {};
  if (job.waiting_for_workers() == 0) return EndsText(SecondsToEnd(job));
  if (!farm.workers.has_value() || !job.device().empty()) return {};
  const Serving serving =
      ServingOf(*farm.workers, v1::RUNNER, DeviceKey(job), /*keeps_leases=*/false);
  return StartsText(SecondsToDevice(job, HoldersOf(serving.workers, job, farm.jobs)));
}

std::string WhyJson(const v1::JobStatus& job, const FarmAnswers& farm) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Reason& reason : WhyOf(job, farm)) {
    nlohmann::ordered_json one;
    one["kind"] = WordsOf(reason.kind).name;
    one["text"] = reason.text;
    one["details"] = reason.details;
    one["remedy"] = reason.remedy;
    all.push_back(std::move(one));
  }
  nlohmann::ordered_json json;
  json["job"] = job.id();
  json["state"] = v1::JobState_Name(job.state());
  json["estimate"] = EstimateText(job, farm);
  json["reasons"] = std::move(all);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace kiln
