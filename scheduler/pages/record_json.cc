#include "scheduler/pages/record_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/dag/text.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "compiler/target/recorded.h"
#include "device/device_state.h"
#include "rpc/device_state_message.h"
#include "scheduler/pages/job_json.h"
#include "scheduler/pages/roofline.h"
#include "scheduler/words/format.h"
#include "store/wire/record_message.h"

namespace kiln::scheduler {
namespace {

constexpr std::string_view kForms[] = {"loops", "schedule", "program", "dag"};
constexpr size_t kMostReadings = 100;

// Returns a step as its name, its tag and its values: "split", "SP", "[0, 2, 512, [32], 1]".
Json StepJson(const schedule::Step& step) {
  const std::string text = step.ToJson();
  const size_t values = text.find(", ");
  Json json;
  json["name"] = step.name();
  json["code"] = step.tag();
  json["values"] = values == std::string::npos ? "" : Bounded("[" + text.substr(values + 2));
  return json;
}

Json StepsJson(const store::Record& record) {
  Json steps = Json::array();
  const auto parsed = schedule::ParseSteps(record.steps);
  if (!parsed.ok()) {
    // The parameters of a hand-written kernel, or steps of another program.
    Json one;
    one["name"] = "parameters";
    one["code"] = "";
    one["values"] = Bounded(record.steps);
    steps.push_back(std::move(one));
    return steps;
  }
  for (const schedule::StepPtr& step : *parsed) {
    if (steps.size() < kMostSteps) steps.push_back(StepJson(*step));
  }
  return steps;
}

Json RoofJson(const store::Record& record) {
  Json json;
  const auto roof = RooflineOf(record);
  json["known"] = roof.ok();
  json["reason"] = roof.ok() ? "" : std::string(Message(roof.status()));
  if (!roof.ok()) return json;
  json["operations"] = roof->operations;
  json["bytes"] = roof->bytes;
  json["intensity"] = roof->intensity;
  json["flops"] = roof->flops;
  json["limit"] = roof->limit;
  json["bound"] = roof->is_memory_bound ? "memory" : "arithmetic";
  json["peak_flops"] = roof->peaks.peak_flops;
  json["peak_of"] = roof->peaks.peak_of;
  json["bytes_per_s"] = roof->peaks.bytes_per_s;
  json["bytes_of"] = roof->peaks.bytes_of;
  return json;
}

// Returns the form in which `kiln show` prints the code of the target's programs. A target for
// which no code is made has the program alone.
std::string_view CodeForm(std::string_view target) {
  if (target.starts_with("cuda")) return "cuda";
  return target.starts_with("llvm") ? "llvm" : "program";
}

// Returns the commands that show the record's code and repeat its trial.
Json CommandsOf(const store::Record& record) {
  const std::string name = fmt::format("{}/{}", record.job_id, record.trial);
  Json commands = Json::array();
  commands.push_back(fmt::format("kiln show {} --as {}", name, CodeForm(record.target)));
  commands.push_back(TrialCommand(record.job_id, record.trial));
  return commands;
}

void AddMeasurement(const store::Record& record, Json& json) {
  json["costs_s"] = Json::array();
  for (const double cost_s : record.costs_s) {
    if (json["costs_s"].size() < kMostReadings) json["costs_s"].push_back(cost_s);
  }
  json["confidence_s"] = record.confidence_s.value_or(0);
  json["max_error"] = record.max_error;
  json["unchecked"] = Bounded(record.unchecked);
  json["mark"] = Bounded(record.mark);
  json["score"] = record.score.has_value() ? Json(*record.score) : Json();
  json["builder"] = Bounded(record.builder);
  json["runner"] = Bounded(record.runner);
  const v1::Record message = store::RecordMessage(record);
  json["device_state"] = device::PrintDeviceState(DeviceStateOf(message.result().device_state()));
  json["trace_id"] = message.result().trace_id();
  const auto model = device::ParseDeviceModel(record.device_model);
  json["device_summary"] = model.ok() ? device::DeviceSummary(*model) : "";
}

StatusOr<std::string> Lowered(const store::Record& record, const schedule::State& state,
                              const std::stop_token& stop) {
  KILN_ASSIGN_OR_RETURN(const target::RecordedTarget recorded,
                        target::ParseRecordedTarget(record.target));
  KILN_ASSIGN_OR_RETURN(const ir::Program program,
                        lower::Lower(state, {.gpu = recorded.target.is_gpu(), .stop = stop}));
  return ir::ProgramText(program);
}

}  // namespace

Json RecordRowJson(const store::Record& record, std::string_view description) {
  Json json = TrialJson(record);
  json["job"] = record.job_id;
  json["description"] = Bounded(description);
  json["workload_id"] = record.workload_id;
  json["workload_key"] = Bounded(record.workload_key);
  json["target"] = BriefTarget(record.target);
  json["device"] = Bounded(record.device);
  json["measured_as"] = Bounded(record.measured_as);
  return json;
}

Json RecordJson(const store::Record& record, std::string_view description,
                const store::Record* best) {
  Json json = RecordRowJson(record, description);
  json["target"] = Bounded(record.target);
  AddMeasurement(record, json);
  json["best_s"] = best == nullptr ? 0 : store::Cost(*best);
  json["best_record"] = best == nullptr ? 0 : best->id;
  json["steps"] = StepsJson(record);
  json["roof"] = RoofJson(record);
  json["commands"] = CommandsOf(record);
  return json;
}

std::span<const std::string_view> ProgramForms() { return kForms; }

StatusOr<std::string> ProgramText(const store::Record& record, std::string_view form,
                                  const std::stop_token& stop) {
  if (std::ranges::count(kForms, form) == 0) {
    return InvalidArgument("found the form '{}', expected one of: {}", form,
                           fmt::join(kForms, ", "));
  }
  if (record.dag.empty()) {
    return NotFound("The record was imported, and does not tell its computation.");
  }
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(record.dag));
  if (form == "dag") return dag::PrintDag(*dag);
  KILN_ASSIGN_OR_RETURN(const std::vector<schedule::StepPtr> steps,
                        schedule::ParseSteps(record.steps));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(dag, steps, stop));
  if (form == "schedule") return schedule::PrintPrimitives(state);
  if (form == "program") return Lowered(record, state, stop);
  // FillExtents adds the extents of attached stages, which a replay leaves open.
  const auto filled = lower::FillExtents(state, stop);
  return schedule::PrintLoops(filled.ok() ? *filled : state);
}

}  // namespace kiln::scheduler
