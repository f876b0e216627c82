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

// "sp": the extents of the loops that a loop is split into, outermost first. The first one is -1 or
// whatever is left; it is never used.
struct SplitEntity {
  std::vector<int64_t> sizes;
  bool operator==(const SplitEntity&) const = default;
};

// "re": order[n] is the old number of the new loop n.
struct ReorderEntity {
  std::vector<int64_t> order;
  bool operator==(const ReorderEntity&) const = default;
};

// "an": a word for each loop: none, unroll, vec, fuse, vthread, blockIdx.x, ... Or, of the policy
// locate_cache, the numbers of the loops that caches are computed at.
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

// As Python prints it: "[-1, 2, 8, 4]", "['unroll', 'vec']", "True".
std::string PrintEntity(const Entity& entity);

using NamedEntity = std::pair<std::string, Entity>;

// The "entity" of a record line: [["tile_f", "sp", [-1, 2, 8, 4]], ["unroll", "ot", true]].
std::string PrintEntities(std::span<const NamedEntity> entities);

// For people, on one line: "tile_f=[-1,2,8,4] unroll=True".
std::string PrintValues(std::span<const NamedEntity> entities);

// Reads what PrintEntities writes; blanks may be left out. InvalidArgument names the column, what
// was found and what was expected. An empty "an" list is one of words.
StatusOr<std::vector<NamedEntity>> ParseEntities(std::string_view json);

}  // namespace kiln::search
