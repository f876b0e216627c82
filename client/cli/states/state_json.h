// States as JSON, for programs that show or change schedules.
#pragma once

#include <nlohmann/json.hpp>

#include "compiler/schedule/state.h"

namespace kiln::client {

// Returns what TVM's State has: for each stage its name, kind, place, loops and hints, in the order
// of the stages; and the loop nest as text, the steps, and whether no length is a blank. The extent
// of a loop is null if it is not known.
nlohmann::json StateJson(const schedule::State& state);

}  // namespace kiln::client
