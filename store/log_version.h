// The version that a line of a log says its format has (docs/records.md).
//
// Pure function; any thread.
#pragma once

#include <string>
#include <string_view>

namespace kiln::store {

inline constexpr std::string_view kKnownLogVersions = "v0.1 to v0.6, and 0.1 and 0.2 of autotvm";

// "v0.9" of a line whose version is none of kKnownLogVersions; "": it is one, or the line says none.
// The line need not be one of a log. Cost: a look at the line from its end.
std::string UnknownLogVersion(std::string_view line);

}  // namespace kiln::store
