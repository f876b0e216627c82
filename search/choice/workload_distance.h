// How far a task is from another one that computes the same with other extents, as TVM's
// auto_scheduler says when it looks for records of compatible tasks.
//
// Pure function.
#pragma once

#include <optional>
#include <string_view>

namespace kiln::search {

// Of workload keys (dag/workload_key.h): the product of wanted/found over their numbers, 1 for equal
// ones. None: another hash, another number of arguments, an extent that is no multiple of the found
// one, or another word. Whether inputs are packed (base/packed_key.h) makes no difference: the stages
// are the same. What `found` costs, times this, is about what `wanted` costs with the same
// tiles.
std::optional<double> WorkloadDistance(std::string_view wanted, std::string_view found);

// The hash in front of a key: equal for all tasks that are at some distance. "": none.
std::string_view WorkloadHash(std::string_view key);

}  // namespace kiln::search
