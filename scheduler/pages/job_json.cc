#include "scheduler/pages/job_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/words/format.h"
#include "scheduler/words/task_shares.h"
#include "scheduler/words/variant_groups.h"

namespace kiln::scheduler {
namespace {

// Points of the small curve in a list.
constexpr size_t kSparkPoints = 40;
constexpr int kMostNotices = 20, kMostNetworks = 20;

// Returns how many times the unscheduled loops take as long; 0 = not known.
double SpeedUpOf(v1::JobStatus job, double total_s) {
  for (v1::TaskStatus& task : *job.mutable_tasks()) task.set_best_cost_s(task.reference_cost_s());
  const std::optional<double> reference_s = ObjectiveOf(job);
  return reference_s.has_value() && total_s > 0 ? *reference_s / total_s : 0;
}

// A job of TVM's kind of objective has its total in its rounds alone until each task has a result.
double TotalOf(const v1::JobStatus& job, const RoundCurve& curve) {
  if (const auto total_s = ObjectiveOf(job); total_s.has_value()) return *total_s;
  return curve.points().empty() ? 0 : curve.points().back().total_s;
}

Json NetworksOf(const v1::JobStatus& job) {
  std::set<std::string> networks;
  for (const v1::TaskStatus& task : job.tasks()) {
    if (!task.spec().network().empty()) networks.insert(task.spec().network());
  }
  Json names = Json::array();
  for (const std::string& name : networks) {
    if (names.size() < kMostNetworks) names.push_back(Bounded(name));
  }
  return names;
}

Json SparkOf(const RoundCurve& curve) {
  Json points = Json::array();
  for (const RoundPoint& point : curve.Thinned(kSparkPoints)) {
    points.push_back({point.trials, point.total_s});
  }
  return points;
}

void AddCounts(const v1::JobStatus& job, Json& row) {
  const uint32_t limit = job.spec().options().trials();
  row["trials_done"] = job.trials_done();
  row["trials_limit"] = limit;
  row["errors"] = NumErrors(job);
  row["progress"] = ProgressOf(job);
  row["created_s"] = job.created_s();
  row["elapsed_s"] = job.elapsed_s();
  row["busy_share"] = job.busy_share();
  row["busy_share_last_minute"] = job.busy_share_last_minute();
  row["elites_share"] = job.elites_share();
  row["trials_per_s"] = job.trials_per_s_last_minute();
  row["waiting"] = job.waiting_for_workers() != 0;
}

Json TaskJson(const v1::TaskStatus& task, int index) {
  Json json;
  json["index"] = index;
  json["description"] = Bounded(task.spec().description());
  json["target"] = BriefTarget(task.spec().target());
  json["weight"] = task.spec().weight() > 0 ? task.spec().weight() : 1;
  json["variant"] = Bounded(task.spec().variant());
  json["is_alternative"] = task.spec().has_alternative_of();
  json["network"] = Bounded(task.spec().network());
  json["tuned_by_job"] = task.tuned_by_job();
  json["workload_id"] = task.workload_id();
  json["workload_key"] = Bounded(task.workload_key());
  json["trials"] = task.trials();
  json["best_s"] = task.best_cost_s();
  json["best_record"] = task.best_record_id();
  json["reference_s"] = task.reference_cost_s();
  json["flop_count"] = task.flop_count();
  json["known_states"] = task.known_states();
  return json;
}

Json BucketsJson(const TaskDigest& task) {
  Json buckets = Json::array();
  for (const auto& [number, bucket] : task.buckets) {
    buckets.push_back(
        {bucket.first, bucket.last, bucket.low_s, bucket.high_s, bucket.measured, bucket.failed});
  }
  return buckets;
}

Json TaskCurveJson(uint32_t index, const TaskDigest& task) {
  Json json;
  json["index"] = index;
  json["best"] = Json::array();
  for (const BestPoint& point : task.best) json["best"].push_back({point.trial, point.cost_s});
  json["buckets"] = BucketsJson(task);
  return json;
}

Json CauseJson(const std::string& job_id, const FailureCause& cause) {
  Json json;
  json["kind"] = ErrorName(static_cast<uint32_t>(cause.error));
  json["message"] = cause.message;
  json["count"] = cause.count;
  json["first_trial"] = cause.first_trial;
  json["last_trial"] = cause.last_trial;
  json["record"] = cause.record;
  json["command"] = TrialCommand(job_id, cause.last_trial);
  return json;
}

}  // namespace

std::string TrialCommand(const std::string& job_id, uint32_t trial) {
  return fmt::format("kiln trial {}/{}", job_id, trial);
}

Json JobRowJson(const v1::JobStatus& job, const RoundCurve& curve) {
  Json row;
  row["id"] = job.id();
  row["name"] = Bounded(job.spec().name());
  row["user"] = Bounded(job.spec().user());
  row["priority"] = job.spec().priority();
  row["state"] = JobStateName(job.state());
  row["is_final"] =
      job.state() == v1::SUCCEEDED || job.state() == v1::FAILED || job.state() == v1::CANCELLED;
  row["ending"] = EndingText(job);
  row["message"] = Bounded(job.message());
  row["phase"] = Bounded(job.phase());
  row["device"] = Bounded(job.device());
  row["target"] = job.tasks().empty() ? "" : BriefTarget(job.tasks(0).spec().target());
  row["description"] = job.tasks().empty() ? "" : Bounded(job.tasks(0).spec().description());
  row["task_count"] = job.tasks_size();
  AddCounts(job, row);
  row["estimate"] = "";
  const double total_s = TotalOf(job, curve);
  row["total_s"] = total_s;
  row["speed_up"] = SpeedUpOf(job, total_s);
  row["objective"] = ObjectiveWord(job);
  row["networks"] = NetworksOf(job);
  row["curve"] = SparkOf(curve);
  row["notices"] = Json::array();
  for (const std::string& notice : job.notices()) {
    if (row["notices"].size() < kMostNotices) row["notices"].push_back(Bounded(notice));
  }
  return row;
}

Json TasksJson(const v1::JobStatus& job) {
  Json tasks = Json::array();
  const std::vector<double> shares = SharesOf(job);
  for (int i = 0; i < job.tasks_size() && tasks.size() < kMostTasks; ++i) {
    tasks.push_back(TaskJson(job.tasks(i), i));
    tasks.back()["share"] = shares[static_cast<size_t>(i)];
  }
  return tasks;
}

Json WhyJsonOf(const v1::JobStatus& job, const FarmAnswers& farm) {
  Json why;
  why["estimate"] = EstimateText(job, farm);
  why["reasons"] = Json::array();
  for (const Reason& reason : WhyOf(job, farm)) {
    Json one;
    one["kind"] = WordsOf(reason.kind).name;
    one["text"] = Bounded(reason.text);
    one["details"] = Json::array();
    for (const std::string& line : reason.details) one["details"].push_back(Bounded(line));
    one["remedy"] = Bounded(reason.remedy);
    why["reasons"].push_back(std::move(one));
  }
  return why;
}

Json OptionsJson(const v1::TuneOptions& options) {
  Json json;
  json["policy"] = options.policy().empty() ? "sketch.xgb" : Bounded(options.policy());
  json["seed"] = options.seed();
  json["objective"] = options.objective().empty() ? "weighted-sum" : Bounded(options.objective());
  json["limits"] = LimitsText(options);
  return json;
}

Json CurveJson(const std::string& job_id, uint64_t trials, bool complete, const RoundCurve& curve,
               const TrialDigest& digest) {
  Json json;
  json["complete"] = complete;
  json["read"] = digest.trials();
  json["trials"] = std::max<uint64_t>(trials, digest.trials());
  json["last_record"] = digest.last_id();
  json["rounds"] = Json::array();
  for (const RoundPoint& point : curve.points()) {
    json["rounds"].push_back({point.trials, point.elapsed_s, point.total_s, point.task_index});
  }
  json["tasks"] = Json::array();
  for (const auto& [index, task] : digest.tasks()) {
    if (json["tasks"].size() < kMostTasks) json["tasks"].push_back(TaskCurveJson(index, task));
  }
  json["causes"] = Json::array();
  for (const FailureCause& cause : digest.causes()) {
    json["causes"].push_back(CauseJson(job_id, cause));
  }
  return json;
}

Json TrialJson(const store::Record& record) {
  Json json;
  json["record"] = record.id;
  json["trial"] = record.trial;
  json["task"] = record.task_index;
  json["error"] = record.error;
  json["error_name"] =
      record.error == store::kNoError ? "" : ErrorName(static_cast<uint32_t>(record.error));
  json["message"] = Bounded(record.message);
  json["cost_s"] = record.error == store::kNoError ? store::Cost(record) : 0;
  json["stopped_early"] = record.stopped_early;
  json["remeasurements"] = record.remeasurements;
  json["origin"] = Bounded(record.origin);
  json["build_s"] = record.build_s;
  json["run_s"] = record.run_s;
  json["timestamp_s"] = record.timestamp_s;
  json["flop_count"] = record.flop_count;
  json["command"] = TrialCommand(record.job_id, record.trial);
  return json;
}

}  // namespace kiln::scheduler
