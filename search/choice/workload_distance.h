// The distance between two tasks that compute the same with other extents. TVM's auto_scheduler
// uses this distance when it looks for records of compatible tasks.
//
// Pure function.
#pragma once

#include <optional>
#include <string_view>

namespace kiln::search {

// Compares two workload keys (dag/workload_key.h). Returns the product of wanted/found over the
// numbers of the keys, which is 1 for equal keys. Returns nothing if the hash, the number of
// arguments or a word differs, or if an extent is no multiple of the found one. Packed inputs
// (base/arrays/packed_key.h) make no difference, because the stages are the same. The cost of
// `found` times this distance is about the cost of `wanted` with the same tiles.
std::optional<double> WorkloadDistance(std::string_view wanted, std::string_view found);

// Returns the hash at the begin of a key, which is equal for all tasks at a finite distance, or ""
// if there is none.
std::string_view WorkloadHash(std::string_view key);

}  // namespace kiln::search
