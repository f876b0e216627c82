// A number with its noun, as people write it: "1 kernel", "25 kernels", "3,700 records".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

// `noun` is the singular. `plural` is needed if the plural is not the noun with an s.
std::string Counted(int64_t count, std::string_view noun, std::string_view plural = {});

// Returns "is" for a count of one, otherwise "are".
inline std::string_view IsOrAre(int64_t count) { return count == 1 ? "is" : "are"; }

}  // namespace kiln
