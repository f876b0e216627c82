// kiln records bind, and --bind of other commands: which operator or text file a workload key of a
// log stands for, where the key does not say.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/archive.h"
#include "client/cli/workload_source.h"
#include "client/session.h"

namespace kiln::client {

struct Binding {
  std::string key;  // as logs have it
  Workload workload;
};

// KEY=FILE, or KEY=OPERATOR ARGUMENTS [EPILOGUE]: `["my_matmul", 127, 96, 80]=matmul 127,96,80`.
StatusOr<std::vector<Binding>> ParseBindings(const std::vector<std::string>& texts);

// Keeps it, binds the records that are there, and says on stderr what came of it.
StatusOr<v1::BindKeyReply> Bind(const Binding& binding, Archive& archive);

struct BindFlags {
  std::string key, what;  // an operator or a text file; "": that of the arguments
  WorkloadArguments arguments;
};
Status BindCommand(const BindFlags& flags, const Session& session);

}  // namespace kiln::client
