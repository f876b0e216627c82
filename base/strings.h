// The two conversions between std::string_view and abseil's, which Debian builds as a type of its
// own.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace kiln {
inline absl::string_view ToAbsl(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view ToStd(absl::string_view s) { return {s.data(), s.size()}; }
}  // namespace kiln
