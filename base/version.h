// The version of this Kiln, and that of the calls between its processes.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln {

inline constexpr std::string_view kVersion = "1";

// Version of the scheduler's calls. A client and a scheduler of different numbers don't understand
// each other. A new call or field keeps the number, since a peer that does not know it goes on as
// before.
inline constexpr uint32_t kProtocol = 1;

}  // namespace kiln
