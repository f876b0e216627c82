// Reads the format version that a line of a log states (docs/records.md).
//
// Pure function; any thread may call it.
#pragma once

#include <string>
#include <string_view>

namespace kiln::store {

inline constexpr std::string_view kKnownLogVersions = "v0.1 to v0.6, and 0.1 and 0.2 of autotvm";

// Returns the version of a line, such as "v0.9", if it is none of kKnownLogVersions; "" if it is
// known or the line states none. The line need not belong to a log. Cost: a search from the end of
// the line.
std::string UnknownLogVersion(std::string_view line);

}  // namespace kiln::store
