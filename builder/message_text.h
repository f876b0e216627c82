// The text of an error on its way into a reply.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln::builder {

inline constexpr size_t kMaxMessageBytes = 512;

// The text itself, or of a longer one the first and the last 256 bytes, " ... " between them
// included. The result is valid UTF-8.
std::string CutMessage(std::string_view text);

}  // namespace kiln::builder
