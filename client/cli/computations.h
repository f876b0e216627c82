// Finds the computations for which a workload key may stand. A key is a label: computations that
// differ in types, constants or extents of reductions may share it. Their identities differ
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
  // Text form.
  std::string dag;
};

// Returns the computations of operators that are known by name.
std::vector<NamedComputation> KnownComputationsOf(const std::string& key);
// Returns these and the computations of the archive's tasks and records, each once. Cost: reads all
// jobs.
StatusOr<std::vector<NamedComputation>> ComputationsOf(const std::string& key, Archive& archive);

// Returns "matmul 64,64,64, of float32 and int8, 5a1d...": types of the inputs, identity.
std::string ComputationText(const NamedComputation& computation);

// Returns InvalidArgument with a line for each computation: `what` may mean any of them.
Status AmbiguousComputation(std::string_view what,
                            const std::vector<NamedComputation>& computations);

// Names that jobs give to their tasks, printable. The names stand by identity, and by key if the
// jobs know only one computation with the key.
struct Names {
  std::map<std::string, std::string> by_id, by_key;
};
Names NamesOf(const std::vector<v1::JobStatus>& jobs);
// Returns the record's key if no job has a name for it.
std::string NameOf(const v1::Record& record, const Names& names);

// Returns whether the text has 64 lower-case hex digits.
bool IsWorkloadId(std::string_view text);

}  // namespace kiln::client
