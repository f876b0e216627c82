// What all commands share: where the jobs and records are, and how to print.
#pragma once

#include <memory>
#include <string>

#include "base/secret.h"
#include "base/status.h"
#include "client/archive.h"
#include "client/models.h"

namespace kiln::client {

class SchedulerClient;

struct Session {
  std::string program = "kiln";  // as it was started, for commands we print
  std::string scheduler;         // HOST:PORT; "": none, work on the database file
  std::string db = "kiln.db";
  std::string secret_file;  // of the farm; "": KILN_SECRET_FILE, where it is set
  bool json = false;

  // "kiln show --db other.db ...": `words` as a command for the same place.
  std::string Command(const std::string& words) const;
  // Of the farm; none where no file is named.
  StatusOr<Secret> ReadSecret() const;
  // To the scheduler; the header is client.h.
  StatusOr<std::unique_ptr<SchedulerClient>> Connect() const;
  // The scheduler's records, or the file's.
  StatusOr<std::unique_ptr<Archive>> OpenArchive(bool write = false) const;
  // Likewise of cost models.
  StatusOr<std::unique_ptr<Models>> OpenModels(bool write = false) const;
};

}  // namespace kiln::client
