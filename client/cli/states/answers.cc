#include "client/cli/states/answers.h"

#include <fmt/ranges.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "client/cli/space_text.h"
#include "client/cli/states/fields.h"
#include "client/cli/states/packed_json.h"
#include "client/cli/states/population.h"
#include "client/cli/states/state_json.h"
#include "client/view/render.h"
#include "compiler/dag/hash_text.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"
#include "compiler/schedule/tvm/primitives.h"
#include "compiler/target/target.h"
#include "search/choice/workload_distance.h"
#include "search/templates/shipped.h"

namespace kiln::client {
namespace {

using Json = nlohmann::json;

// The most computations that are open at once. One takes some kilobytes.
constexpr size_t kMaxTasks = 100'000;

Json HardwareJson(const target::HardwareParams& hardware) {
  Json json = Json::object();
#define KILN_MEMBER(type, name, value) json[#name] = hardware.name;
  KILN_HARDWARE_PARAMS(KILN_MEMBER)
#undef KILN_MEMBER
  return json;
}

// Returns the lines of the hash text, as TVM prints them, with the shapes of inputs.
std::string TextOfDag(const dag::Dag& dag) {
  std::string text = dag::HashText(dag);
  size_t at = 0;
  for (const dag::OpNode& node : dag.nodes()) {
    if (!node.op->is_placeholder()) continue;
    constexpr std::string_view kMark = " = PLACEHOLDER ";
    at = text.find(kMark, at) + kMark.size();
    text.insert(at, fmt::format("[{}]", fmt::join(node.op->shape(), ", ")));
  }
  return text;
}

StatusOr<Json> Compatible(const Json& question) {
  KILN_ASSIGN_OR_RETURN(const std::string key, TextField(question, "key"));
  KILN_ASSIGN_OR_RETURN(const std::string other, TextField(question, "other"));
  const std::optional<double> distance = search::WorkloadDistance(key, other);
  return Json{{"distance", distance.has_value() ? Json(*distance) : Json()}};
}

}  // namespace

std::string StateAnswers::Answer(std::string_view question) {
  // Texts in an answer come from parsed ones, and what is no UTF-8 is replaced all the same.
  constexpr auto kReplace = Json::error_handler_t::replace;
  const Json parsed = Json::parse(question, nullptr, /*allow_exceptions=*/false);
  const StatusOr<Json> answer = parsed.is_object()
                                    ? AnswerTo(parsed)
                                    : InvalidArgument("found no JSON object, expected a question");
  const Json said = answer.ok() ? *answer : Json{{"error", std::string(Message(answer.status()))}};
  return said.dump(-1, ' ', /*ensure_ascii=*/true, kReplace);
}

StatusOr<Json> StateAnswers::AnswerTo(const Json& question) {
  KILN_ASSIGN_OR_RETURN(const std::string what, TextField(question, "do"));
  if (what == "open") return Open(question);
  if (what == "compatible") return Compatible(question);
  KILN_ASSIGN_OR_RETURN(const search::Task* const task, TaskOf(question));
  if (what == "dag") return Json{{"text", TextOfDag(*task->dag)}};
  if (what == "program") return Program(question, *task);
  if (what == "packed") {
    KILN_ASSIGN_OR_RETURN(const schedule::State state, StepsField(task->dag, question));
    return PackedJson(state, task->target.is_gpu());
  }
  if (what == "state") return Show(question, *task);
  if (what == "print") return Print(question, *task);
  if (what == "sample") return SampleStates(question, *task);
  if (what == "evolve") return EvolveStates(question, *task, last_model_);
  if (what == "predict") return PredictStates(question, *task, last_model_);
  if (what == "features") return FeaturesOfStates(question, *task);
  if (what == "space" || what == "config" || what == "index") return Space(question, *task);
  return InvalidArgument(
      "\"do\" is '{}', expected open, dag, state, print, program, packed, sample, evolve, predict, "
      "features, space, config, index or compatible",
      what);
}

StatusOr<Json> StateAnswers::Open(const Json& question) {
  KILN_ASSIGN_OR_RETURN(const std::string text, TextField(question, "dag"));
  KILN_ASSIGN_OR_RETURN(const std::string target_text, TextField(question, "target"));
  const auto known = numbers_.find(target_text + "\n" + text);
  if (known == numbers_.end() && tasks_.size() == kMaxTasks)
    return ResourceExhausted("{} computations are open, expected at most as many", kMaxTasks);
  if (known == numbers_.end()) {
    KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(text));
    KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(target_text));
    tasks_.emplace_back(dag, target, target::DefaultHardware(target, AvailableCpus()),
                        dag::WorkloadKey(*dag));
    numbers_[target_text + "\n" + text] = tasks_.size() - 1;
  }
  const size_t number = known == numbers_.end() ? tasks_.size() - 1 : known->second;
  const search::Task& task = tasks_[number];
  return Json{{"task", number},
              {"target", target::PrintTarget(task.target)},
              {"hardware", HardwareJson(task.hardware)}};
}

StatusOr<const search::Task*> StateAnswers::TaskOf(const Json& question) const {
  if (tasks_.empty()) return FailedPrecondition("no computation is open, expected one");
  KILN_ASSIGN_OR_RETURN(const int64_t number,
                        NumberField(question, "task", 0, static_cast<int64_t>(tasks_.size()) - 1));
  return &tasks_[static_cast<size_t>(number)];
}

StatusOr<Json> StateAnswers::Show(const Json& question, const search::Task& task) const {
  KILN_ASSIGN_OR_RETURN(schedule::State state, StepsField(task.dag, question));
  const auto bounds = question.find("bounds");
  if (bounds != question.end() && *bounds == Json(true)) {
    KILN_ASSIGN_OR_RETURN(state, lower::FillExtents(std::move(state)));
  }
  return StateJson(state);
}

StatusOr<Json> StateAnswers::Program(const Json& question, const search::Task& task) const {
  KILN_ASSIGN_OR_RETURN(const schedule::State state, StepsField(task.dag, question));
  const Status lowers = lower::Lower(state, {.gpu = task.target.is_gpu()}).status();
  return Json{{"why_not", std::string(Message(lowers))}};
}

StatusOr<Json> StateAnswers::Print(const Json& question, const search::Task& task) const {
  KILN_ASSIGN_OR_RETURN(const std::string form, TextField(question, "form"));
  if (form == "primitives") {
    KILN_ASSIGN_OR_RETURN(const schedule::State state, StepsField(task.dag, question));
    KILN_ASSIGN_OR_RETURN(const std::string lines, schedule::TvmPrimitives(state));
    return Json{{"text", lines}};
  }
  KILN_ASSIGN_OR_RETURN(const std::string text,
                        Render({.dag = task.dag,
                                .steps = question.value("steps", Json::array()).dump(),
                                .target = target::PrintTarget(task.target)},
                               form));
  return Json{{"text", text}};
}

StatusOr<search::TemplatePtr> StateAnswers::TemplateOf(const Json& question,
                                                       const search::Task& task) {
  KILN_ASSIGN_OR_RETURN(const std::string text, TextField(question, "template"));
  if (template_ == nullptr || text != template_text_) {
    KILN_ASSIGN_OR_RETURN(search::TemplatePtr parsed, search::TemplateOfText(text));
    if (parsed == nullptr)
      return InvalidArgument("\"template\" is empty, expected a template or a list of schedules");
    template_ = std::move(parsed);
    template_text_ = text;
  }
  return search::TemplateFor(template_, task.dag, task.target.is_gpu());
}

StatusOr<Json> StateAnswers::Space(const Json& question, const search::Task& task) {
  KILN_ASSIGN_OR_RETURN(const search::TemplatePtr of, TemplateOf(question, task));
  KILN_ASSIGN_OR_RETURN(const search::ConfigSpace space, of->Space(task.dag));
  if (question.contains("entity")) {
    KILN_ASSIGN_OR_RETURN(const std::vector<search::NamedEntity> entities,
                          search::ParseEntities(question["entity"].dump()));
    KILN_ASSIGN_OR_RETURN(const int64_t index, space.IndexOf(entities));
    return Json{{"index", index}};
  }
  const bool has_index = question.contains("index");
  if (!has_index) {
    Json json = Json::parse(SpaceText(space, /*json=*/true), nullptr, false);
    json["text"] = SpaceText(space, /*json=*/false);
    return json;
  }
  KILN_ASSIGN_OR_RETURN(const int64_t index,
                        NumberField(question, "index", 0, std::max<int64_t>(0, space.range() - 1)));
  KILN_ASSIGN_OR_RETURN(const std::string text,
                        ConfigText(*of, task.dag, space, index, /*json=*/true));
  return Json::parse(text, nullptr, false);
}

}  // namespace kiln::client
