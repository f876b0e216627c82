// Parameters by name, as a user writes them: "max_depth=8".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln::client {

// InvalidArgument: a text is not NAME=NUMBER.
StatusOr<std::map<std::string, double>> ParseParameters(const std::vector<std::string>& texts);

}  // namespace kiln::client
