#include "client/cli/states/fields.h"

#include "compiler/schedule/step.h"

namespace kiln::client {

using Json = nlohmann::json;

StatusOr<std::string> TextField(const Json& question, const char* name) {
  const auto found = question.find(name);
  if (found == question.end() || !found->is_string())
    return InvalidArgument("the question has no text \"{}\", expected one", name);
  return found->get<std::string>();
}

StatusOr<int64_t> NumberField(const Json& question, const char* name, int64_t least, int64_t most) {
  const auto found = question.find(name);
  const bool fits = found != question.end() && found->is_number_integer() &&
                    found->get<int64_t>() >= least && found->get<int64_t>() <= most;
  if (!fits) {
    return InvalidArgument("\"{}\" is {}, expected a whole number from {} to {}", name,
                           found == question.end() ? "missing" : found->dump(), least, most);
  }
  return found->get<int64_t>();
}

StatusOr<search::Parameters> ParametersField(const Json& question) {
  std::map<std::string, double> values;
  const auto found = question.find("parameters");
  if (found != question.end() && !found->is_null()) {
    if (!found->is_object())
      return InvalidArgument("\"parameters\" is {}, expected an object", found->dump());
    for (const auto& [name, value] : found->items()) {
      if (!value.is_number())
        return InvalidArgument("parameter {} is {}, expected a number", name, value.dump());
      values[name] = value.get<double>();
    }
  }
  return search::MakeParameters(values);
}

StatusOr<schedule::State> StateOf(const dag::DagPtr& dag, const Json& steps) {
  KILN_ASSIGN_OR_RETURN(const std::vector<schedule::StepPtr> parsed,
                        schedule::ParseSteps(steps.dump()));
  return schedule::Replay(dag, parsed);
}

StatusOr<schedule::State> StepsField(const dag::DagPtr& dag, const Json& question) {
  const auto found = question.find("steps");
  return StateOf(dag, found == question.end() ? Json::array() : *found);
}

StatusOr<std::vector<schedule::State>> StatesField(const dag::DagPtr& dag, const Json& question) {
  std::vector<schedule::State> states;
  const auto found = question.find("states");
  if (found == question.end()) return states;
  if (!found->is_array())
    return InvalidArgument("\"states\" is {}, expected a list of lists of steps", found->dump());
  for (const Json& steps : *found) {
    StatusOr<schedule::State> state = StateOf(dag, steps);
    if (!state.ok()) return Annotate(state.status(), fmt::format("state {}", states.size()));
    states.push_back(*std::move(state));
  }
  return states;
}

}  // namespace kiln::client
