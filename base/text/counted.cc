#include "base/text/counted.h"

#include <fmt/format.h>

#include "base/text/units.h"

namespace kiln {

std::string Counted(int64_t count, std::string_view noun, std::string_view plural) {
  const std::string number = FormatCount(count);
  if (count == 1) return fmt::format("{} {}", number, noun);
  return plural.empty() ? fmt::format("{} {}s", number, noun)
                        : fmt::format("{} {}", number, plural);
}

}  // namespace kiln
