// The point of a template that a candidate is, as its origin states it: "template dense, config
// 5567092: tile_x=[-1,8] unroll=True" or "kernel gemm, config 12". Records keep this text. A point
// is found again by its index; the values are for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::search {

struct PointOrigin {
  std::string kind;         // Template::kind
  std::string name;         // name of the template
  int64_t index = 0;        // index in the configuration space of the computation
  std::string values = {};  // values of the knobs, on one line; "" if they are left out
  bool operator==(const PointOrigin&) const = default;
};

std::string PrintPointOrigin(const PointOrigin& origin);
// Returns nothing if the text is not the origin of a point.
std::optional<PointOrigin> ParsePointOrigin(std::string_view text);

}  // namespace kiln::search
