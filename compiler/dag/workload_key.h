// The key of a workload: ["<md5 of the hash text>", [shape of argument], ...] as JSON text. Types
// are not part of it. A mark at its end tells that programs take inputs packed
// (base/arrays/packed_key.h). Logs also have keys of other makers: with flattened shapes, and
// ["function name", arguments...]. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"

namespace kiln::dag {

// Returns 32 hex digits.
std::string DagHash(const Dag& dag);
std::string WorkloadKey(
    const Dag& dag);  // with Python's separators: ["0fad...", [1, 56, 56, 64], ...]

// Returns all keys that logs have for the computation, each once: WorkloadKey, the name here, then
// those of other versions of the library that TVM's operators come from (key_forms.h).
std::vector<std::string> WorkloadKeys(const Dag& dag);

// Returns a key as it stands in logs: with Python's separators, whatever its spaces. Text that is
// no list stays as it is.
std::string NormalizedKey(std::string_view key);

}  // namespace kiln::dag
