// The key of a workload: ["<md5 of the hash text>", [shape of argument], ...] as JSON text. Types
// are not part of it; where programs take inputs packed, a mark at its end says so
// (base/packed_key.h). Keys of other makers are read too: flattened shapes, and ["function name",
// arguments...]. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"

namespace kiln::dag {

std::string DagHash(const Dag& dag);  // 32 hex digits
std::string WorkloadKey(
    const Dag& dag);  // with Python's separators: ["0fad...", [1, 56, 56, 64], ...]

// All keys that logs have for the computation, each once: WorkloadKey, by which it is called here,
// then those of other versions of the library that TVM's operators come from (key_forms.h).
std::vector<std::string> WorkloadKeys(const Dag& dag);

// A key as it stands in logs: with Python's separators, whatever the spaces. Text that is no list
// is taken as it is.
std::string NormalizedKey(std::string_view key);

// A number, or the JSON text of anything else (strings without quotes).
using KeyItem = std::variant<int64_t, std::string>;

struct DecodedKey {
  std::string name;            // hash or function name
  std::vector<KeyItem> items;  // everything after it, lists flattened
  bool operator==(const DecodedKey&) const = default;
};

// Text that is not a JSON list starting with a string, or is nested more than 64 deep, is a name
// without items. Never fails.
DecodedKey DecodeWorkloadKey(std::string_view key);

// How far a record made for `candidate` is from `target`: 1 when equal, the product of the ratios
// target/candidate when every size of the target is a multiple of the candidate's, infinity when
// the schedule can't be carried over.
double WorkloadDistance(const DecodedKey& target, const DecodedKey& candidate);

}  // namespace kiln::dag
