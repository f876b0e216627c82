// The key of a workload: ["<md5 of the hash text>", [shape of argument], ...] as JSON text. Types
// are not part of it. A mark at its end tells that programs take inputs packed
// (base/arrays/packed_key.h). Keys of other makers are read too: flattened shapes, and ["function
// name", arguments...]. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
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

// A number, or the JSON text of any other item (strings without quotes).
using KeyItem = std::variant<int64_t, std::string>;

struct DecodedKey {
  // Hash or function name.
  std::string name;
  // All items after the name, with lists flattened.
  std::vector<KeyItem> items;
  bool operator==(const DecodedKey&) const = default;
};

// Text that is not a JSON list starting with a string, or is nested more than 64 deep, is a name
// without items. Never fails.
DecodedKey DecodeWorkloadKey(std::string_view key);

// Returns the distance of `target` from a record made for `candidate`: 1 if they are equal, the
// product of the ratios target/candidate if every size of the target is a multiple of the
// candidate's, and infinity if the schedule cannot be carried over.
double WorkloadDistance(const DecodedKey& target, const DecodedKey& candidate);

}  // namespace kiln::dag
