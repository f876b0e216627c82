// Which point of a template a candidate is, as its origin says: "template dense, config 5567092:
// tile_x=[-1,8] unroll=True" or "kernel gemm, config 12". Records keep the text, and a point is found
// again by its index; the values are for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::search {

struct PointOrigin {
  std::string kind;         // Template::kind
  std::string name;         // of the template
  int64_t index = 0;        // in the configuration space of the computation
  std::string values = {};  // of its knobs, on one line; "": they are not said
  bool operator==(const PointOrigin&) const = default;
};

std::string PrintPointOrigin(const PointOrigin& origin);
// Nothing: it is no point of a template.
std::optional<PointOrigin> ParsePointOrigin(std::string_view text);

}  // namespace kiln::search
