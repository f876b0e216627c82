// Bindings say for which operator or text file a workload key of a log stands, if the key does not
// say so.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/archive.h"
#include "client/jobs/workload_source.h"
#include "proto/scheduler.pb.h"

namespace CLI {
class App;
}  // namespace CLI

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

// Adds --bind: bindings that are made before a log is read.
void AddBindings(CLI::App& command, std::vector<std::string>& bind);

}  // namespace kiln::client
