// kiln records bind, and --bind of other commands: say for which operator or text file a workload
// key of a log stands, if the key does not say so.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/archive.h"
#include "client/cli/workload_source.h"
#include "client/session.h"

namespace kiln::client {

struct Binding {
  // The key as logs have it.
  std::string key;
  Workload workload;
};

// Parses KEY=FILE, or KEY=OPERATOR ARGUMENTS [EPILOGUE]:
// `["my_matmul", 127, 96, 80]=matmul 127,96,80`.
StatusOr<std::vector<Binding>> ParseBindings(const std::vector<std::string>& texts);

// Keeps the binding, binds existing records, and reports the result on stderr.
StatusOr<v1::BindKeyReply> Bind(const Binding& binding, Archive& archive);

struct BindFlags {
  // `what` is an operator or a text file; "": the operator of `arguments`.
  std::string key, what;
  WorkloadArguments arguments;
};
Status BindCommand(const BindFlags& flags, const Session& session);

}  // namespace kiln::client
