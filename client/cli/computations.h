// What a workload key may stand for. A key is a label: computations that differ in types, constants
// or extents of reductions may share it. What tells them apart is the identity
// (compiler/dag/workload_id.h).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/archive.h"

namespace kiln::client {

struct NamedComputation {
  std::string id, description;
  std::string dag;  // text
};

// Those of the operators that are known by name.
std::vector<NamedComputation> KnownComputationsOf(const std::string& key);
// Those and the ones of the archive's tasks and records, each once. Cost: reads all jobs.
StatusOr<std::vector<NamedComputation>> ComputationsOf(const std::string& key, Archive& archive);

// "matmul 64,64,64, of float32 and int8, 5a1d...": types of the inputs, identity.
std::string ComputationText(const NamedComputation& computation);

// InvalidArgument with a line for each: `what` is not enough, since it may be of any of them.
Status SeveralFit(std::string_view what, const std::vector<NamedComputation>& computations);

// What jobs call their tasks, fit to be printed: by identity, and by key where the jobs know one
// computation with it.
struct Names {
  std::map<std::string, std::string> by_id, by_key;
};
Names NamesOf(const std::vector<v1::JobStatus>& jobs);
// The record's key where no job has a name for it.
std::string NameOf(const v1::Record& record, const Names& names);

// 64 lower-case hex digits.
bool IsWorkloadId(std::string_view text);

}  // namespace kiln::client
