// Prepares the text of an error for a reply.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln::builder {

inline constexpr size_t kMaxMessageBytes = 512;

// Returns the text itself; for a longer text, its first and last 256 bytes, including " ... "
// between them. The result is valid UTF-8.
std::string CutMessage(std::string_view text);

}  // namespace kiln::builder
