#include "client/view/json.h"

#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/utf8.h"
#include "compiler/handwritten/kernel_point.h"
#include "scheduler/words/format.h"
#include "scheduler/words/variant_groups.h"

namespace kiln::client {
namespace {

using Json = nlohmann::ordered_json;

// Messages of programs may hold any bytes, so invalid ones are replaced.
std::string Print(const Json& json) {
  return PrintableJson(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// Returns null for a value that is not known.
Json OrNull(double value) { return value > 0 ? Json(value) : Json(nullptr); }

Json Gflops(double flop_count, double cost_s) {
  return OrNull(cost_s > 0 ? flop_count / cost_s * 1e-9 : 0);
}

Json TaskJson(const v1::TaskStatus& task, const v1::Record* best) {
  Json json = {{"description", task.spec().description()},
               {"workload_id", task.workload_id()},
               {"workload_key", task.workload_key()},
               {"trials", task.trials()},
               {"best_cost_s", OrNull(task.best_cost_s())},
               {"gflops", Gflops(task.flop_count(), task.best_cost_s())},
               {"reference_cost_s", OrNull(task.reference_cost_s())},
               {"reference_record", task.reference_record_id()},
               {"reference_message", task.reference_message()},
               {"speed_up",
                OrNull(task.best_cost_s() > 0 ? task.reference_cost_s() / task.best_cost_s() : 0)}};
  if (task.known_states() > 0) {
    json["known"] = {{"states", task.known_states()},
                     {"cost_s", OrNull(task.known_cost_s())},
                     {"record", task.known_record_id()}};
  }
  if (!task.tuned_by_job().empty()) json["tuned_by_job"] = task.tuned_by_job();
  const v1::TaskSpec& spec = task.spec();
  if (!spec.variant().empty()) json["variant"] = spec.variant();
  if (spec.has_alternative_of()) json["alternative_of"] = spec.alternative_of();
  if (!spec.preparation().empty()) json["preparation"] = spec.preparation();
  if (!spec.network().empty()) json["network"] = spec.network();
  if (best != nullptr) {
    json["record"] = best->id();
    json["max_error"] = best->result().max_error();
    if (!best->result().unchecked().empty()) json["unchecked"] = best->result().unchecked();
    if (!best->mark().empty()) json["mark"] = best->mark();
    json["sampled_outputs"] = best->result().sampled_outputs();
    json["confidence_s"] = OrNull(best->result().confidence_s());
    json["remeasurements"] = RemeasurementsOf(best->result());
    json["steps"] = best->steps();
  }
  return json;
}

}  // namespace

std::string JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  return status.ok() ? text : "null";
}

std::string JsonString(const std::string& text) { return Print(text); }

std::string ShownJson(const std::string& form, const std::string& target, const std::string& steps,
                      const std::string& text) {
  return Print({{"form", form}, {"target", target}, {"steps", steps}, {"text", text}});
}

std::string StartEvent(const std::string& job_id, const v1::JobSpec& spec,
                       const std::string& place) {
  Json json = {{"event", "start"},
               {"job", job_id},
               {"trials", spec.options().trials()},
               {"minutes", OrNull(spec.options().time_budget_s() / 60)},
               {"seed", spec.options().seed()},
               {"place", place}};
  for (const auto& task : spec.tasks()) json["tasks"].push_back(task.description());
  return Print(json);
}

std::string TrialEvent(const v1::JobEvent& event) {
  const v1::Record& record = event.record();
  const v1::JobStatus& job = event.status();
  const double cost_s = CostOf(record.result());
  const bool known = record.task_index() < static_cast<uint32_t>(job.tasks_size());
  const double best_s = known ? job.tasks(static_cast<int>(record.task_index())).best_cost_s() : 0;
  Json json = {{"event", "trial"},
               {"job", job.id()},
               {"trial", record.trial()},
               {"task", record.task_index()},
               {"record", record.id()},
               {"error", v1::ErrorKind_Name(record.result().error())},
               {"message", record.result().message()},
               {"cost_s", OrNull(cost_s)},
               {"gflops", Gflops(record.flop_count(), cost_s)},
               {"stopped_early", record.result().stopped_early()},
               {"best_cost_s", OrNull(best_s)},
               {"trials_done", job.trials_done()},
               {"origin", record.origin()},
               {"score", std::isfinite(record.score()) ? Json(record.score()) : Json(nullptr)}};
  // Only records of hand-written kernels have parameters.
  if (handwritten::IsKernelPoint(record.steps())) {
    const Json point = Json::parse(record.steps(), nullptr, /*allow_exceptions=*/false);
    if (point.is_object()) json["parameters"] = point.value("parameters", Json::object());
  }
  return Print(json);
}

std::string NoticeEvent(const v1::JobStatus& job, const std::string& text) {
  return Print({{"event", "notice"}, {"job", job.id()}, {"text", text}});
}

std::string RoundEvent(const v1::JobEvent& event) {
  const v1::Round& round = event.round();
  Json best = Json::array();
  for (const double best_s : round.best_s()) best.push_back(OrNull(best_s));
  return Print({{"event", "round"},
                {"job", event.status().id()},
                {"round", round.number()},
                {"task", round.task_index()},
                {"trials", round.trials()},
                {"elapsed_s", round.elapsed_s()},
                {"search_s", round.search_s()},
                {"total_latency_s", OrNull(round.total_latency_s())},
                {"best_s", std::move(best)},
                {"report", round.report()}});
}

std::string EndEvent(const v1::JobStatus& job, const std::vector<v1::Record>& best) {
  Json json = {{"event", "end"},
               {"job", job.id()},
               {"state", v1::JobState_Name(job.state())},
               {"ending", v1::JobEnding_Name(job.ending())},
               {"message", job.message()},
               {"trials_done", job.trials_done()},
               {"elapsed_s", job.elapsed_s()},
               {"busy_share", job.busy_share()},
               {"elites_share", job.elites_share()},
               {"objective", job.spec().options().objective()},
               {"objective_s", OrNull(ObjectiveOf(job).value_or(0))},
               {"errors", Json::object()},
               {"tasks", Json::array()}};
  for (const auto& [kind, trials] : job.error_counts()) {
    if (kind == v1::NO_ERROR || trials == 0) continue;
    json["errors"][v1::ErrorKind_Name(static_cast<v1::ErrorKind>(kind))] = trials;
  }
  for (int i = 0; i < job.tasks_size(); ++i) {
    const v1::Record* record = nullptr;
    for (const v1::Record& candidate : best) {
      if (candidate.task_index() == static_cast<uint32_t>(i)) record = &candidate;
    }
    json["tasks"].push_back(TaskJson(job.tasks(i), record));
    const std::vector<int> variants = VariantsOf(job, i);
    if (variants.size() > 1) json["tasks"].back()["fastest"] = Fastest(job, variants) == i;
  }
  return Print(json);
}

}  // namespace kiln::client
