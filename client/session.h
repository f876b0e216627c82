// What all commands share: where the jobs and records are, and how to print.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "client/archive.h"

namespace kiln::client {

struct Session {
  std::string program = "kiln";  // as it was started, for commands we print
  std::string scheduler;         // HOST:PORT; "": none, work on the database file
  std::string db = "kiln.db";
  bool json = false;

  // "kiln show --db other.db ...": `words` as a command for the same place.
  std::string Command(const std::string& words) const;
  // The scheduler's records, or the file's.
  StatusOr<std::unique_ptr<Archive>> OpenArchive(bool write = false) const;
};

}  // namespace kiln::client
