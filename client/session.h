// The options that all commands share: where jobs and records are, and how to print.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "client/archive.h"
#include "client/models.h"
#include "rpc/farm_access.h"

namespace kiln::client {

class SchedulerClient;

struct Session {
  // The program as it was started, for commands that are printed.
  std::string program = "kiln";
  // HOST:PORT; "": no scheduler, the commands work on the database file.
  std::string scheduler;
  std::string db = "kiln.db";
  // Folder of the user's keys, or file of the farm's secret; "": KILN_KEYS or KILN_SECRET_FILE, if
  // one is set.
  std::string keys_folder;
  std::string secret_file;
  bool json = false;

  // Returns `words` as a command for the same place: "kiln show --db other.db ...".
  std::string Command(const std::string& words) const;
  // Opens the keys, or reads the secret (FarmAccess::Open).
  StatusOr<FarmAccess> Access() const;
  // Connects to the scheduler (client.h).
  StatusOr<std::unique_ptr<SchedulerClient>> Connect() const;
  // Opens the records of the scheduler, or of the file.
  StatusOr<std::unique_ptr<Archive>> OpenArchive(bool write = false) const;
  // Opens the cost models of the scheduler, or of the file.
  StatusOr<std::unique_ptr<Models>> OpenModels(bool write = false) const;
};

}  // namespace kiln::client
