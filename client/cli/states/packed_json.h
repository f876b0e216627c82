// The order in which a schedule reads weights that may be laid out anew, as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "compiler/schedule/state.h"

namespace kiln::client {

// Returns "dag", the text of the computation whose weights are packed, and "layouts", which maps
// each packed input to its dimensions, outermost first, each by its extent and the axis that reads
// it: "4j32k16j". A dimension that no axis alone reads is called d0, d1, ... after its number.
StatusOr<nlohmann::json> PackedJson(const schedule::State& state, bool gpu);

}  // namespace kiln::client
