// Reads the fields of a question, and says what is wrong with them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/schedule/state.h"
#include "search/space/parameters.h"

namespace kiln::client {

// InvalidArgument, here and below: the field is missing or has another type.
StatusOr<std::string> TextField(const nlohmann::json& question, const char* name);
StatusOr<int64_t> NumberField(const nlohmann::json& question, const char* name, int64_t least,
                              int64_t most);
// A missing field is an empty list of parameters.
StatusOr<search::Parameters> ParametersField(const nlohmann::json& question);
// Replays a list of steps.
StatusOr<schedule::State> StateOf(const dag::DagPtr& dag, const nlohmann::json& steps);
// The state of the field "steps", which may be missing.
StatusOr<schedule::State> StepsField(const dag::DagPtr& dag, const nlohmann::json& question);
// A missing field is an empty list.
StatusOr<std::vector<schedule::State>> StatesField(const dag::DagPtr& dag,
                                                   const nlohmann::json& question);

}  // namespace kiln::client
