// Seals of texts: who has the key can make one and tell a right one; others can do neither.
#pragma once

#include <string>
#include <string_view>

namespace kiln {

// HMAC-SHA256, in 64 lower-case hex digits.
std::string MacHex(std::string_view key, std::string_view text);

}  // namespace kiln
