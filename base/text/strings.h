// The two conversions between std::string_view and abseil's string_view, which is a type of its own
// in Debian.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace kiln {
inline absl::string_view ToAbsl(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view ToStd(absl::string_view s) { return {s.data(), s.size()}; }
}  // namespace kiln
