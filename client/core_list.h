// Numbers of cores as Linux writes them: "0-3,8".
//
// Pure. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln::client {

// Returns "0-3,8" for the cores 0, 1, 2, 3, 8, which ascend; "" if there are none.
std::string CoreListText(const std::vector<int>& cores);

// Returns the cores of such a text, ascending and each once; white space around it does not count.
// InvalidArgument if it is anything else, or names a core above 65535.
StatusOr<std::vector<int>> ParseCoreList(std::string_view text);

}  // namespace kiln::client
