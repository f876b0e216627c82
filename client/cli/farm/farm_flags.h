// Flags and words that the commands of kiln farm share.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/farm/farm_folder.h"
#include "client/farm/farm_state.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

// Adds --folder.
void AddFarmFolder(CLI::App& command, std::string& folder);
// Returns the folder as an absolute path; of "" the usual one.
StatusOr<std::string> FarmPath(const std::string& folder);

// The flags of a farm's start.
struct FarmFlags {
  std::string folder;
  std::string db;
  std::string listen = "127.0.0.1";
  int workers = 0;
  std::vector<std::string> devices;
  std::string gpus = "all";
  bool tls = false;
  std::string authority;

  void Add(CLI::App& command);
  // Returns them with absolute paths. FailedPrecondition if other machines could reach a farm
  // without keys.
  StatusOr<FarmOptions> Complete() const;
};

// Returns the words after `kiln farm supervise` that mean the options.
std::vector<std::string> SuperviseWords(const FarmOptions& options);

// Returns the state of the farm that runs in the folder. NotFound, with the command that starts
// one, if none does. FailedPrecondition if it runs on another machine. Unavailable if it has not
// written its state within a few seconds of its start.
StatusOr<FarmState> ReadRunningFarm(const FarmFolder& folder);

}  // namespace kiln::client
