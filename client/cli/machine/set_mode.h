// kiln workers pause, drain, cordon and resume: an operator's wish for a worker.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "client/session.h"
#include "proto/tracker.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

struct ModeFlags {
  // The mode that the command line asks for; none: it lists the workers.
  std::optional<v1::WorkerMode> mode = std::nullopt;
  // Id of a worker, a part of it, or the worker's address.
  std::string worker = {};
  std::string why = {};
};

// Adds the commands to `kiln workers`, whose flags they take behind their own.
std::shared_ptr<ModeFlags> AddModeCommands(CLI::App& workers);

// Asks the scheduler for the mode, waits a moment until the worker has heard, and prints its state.
Status SetMode(const ModeFlags& flags, const Session& session);

}  // namespace kiln::client
