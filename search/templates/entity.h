// The value of a knob: one point of one dimension of a configuration space (config_space.h). The
// kinds, and their text in record lines, are those of autotvm (TVM v0.8,
// python/tvm/autotvm/task/space.py).
//
// Immutable values; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"

namespace kiln::search {

// "sp": the extents of the loops that a loop is split into, outermost first. The first extent is
// -1, or the quotient of the loop's extent; it is never used.
struct SplitEntity {
  std::vector<int64_t> sizes;
  bool operator==(const SplitEntity&) const = default;
};

// "re": order[n] is the old number of the new loop n.
struct ReorderEntity {
  std::vector<int64_t> order;
  bool operator==(const ReorderEntity&) const = default;
};

// "an": a word for each loop: none, unroll, vec, fuse, vthread, blockIdx.x, ... For the policy
// locate_cache: the numbers of the loops at which caches are computed.
struct AnnotateEntity {
  std::vector<std::string> words;
  std::vector<int64_t> places;
  bool operator==(const AnnotateEntity&) const = default;
};

// "ot": None, True and False, numbers and words.
struct OptionEntity {
  std::variant<std::monostate, bool, int64_t, double, std::string> value;
  bool operator==(const OptionEntity&) const = default;
};

using Entity = std::variant<SplitEntity, ReorderEntity, AnnotateEntity, OptionEntity>;

// Prints an entity as Python does: "[-1, 2, 8, 4]", "['unroll', 'vec']", "True".
std::string PrintEntity(const Entity& entity);

using NamedEntity = std::pair<std::string, Entity>;

// Prints the "entity" of a record line: [["tile_f", "sp", [-1, 2, 8, 4]], ["unroll", "ot", true]].
std::string PrintEntities(std::span<const NamedEntity> entities);

// Prints the values for people, on one line: "tile_f=[-1,2,8,4] unroll=True".
std::string PrintValues(std::span<const NamedEntity> entities);

// Reads the output of PrintEntities; blanks may be left out. InvalidArgument names the column, the
// text that was found and the text that was expected. An empty "an" list is read as a list of
// words.
StatusOr<std::vector<NamedEntity>> ParseEntities(std::string_view json);

}  // namespace kiln::search
