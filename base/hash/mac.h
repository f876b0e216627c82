// Seals of texts. Only the holders of the key can make a seal or tell a right one.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

// Returns the HMAC-SHA256 in 64 lower-case hex digits.
std::string MacHex(std::string_view key, std::string_view text);

}  // namespace kiln
