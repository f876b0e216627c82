// Copies of a database file: a backup beside a working scheduler, and the way back.
//
// Free functions on files; no connection is open when they return. A copy holds one state of the
// database, however long it takes and whoever writes meanwhile. A file appears under its name only
// as a whole, synced to the disk. Errors: sqlite.h.
//
// Cost: the file is read once and written once. The write-ahead log of the source grows while it is
// copied, and its space is used again afterwards.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "store/sqlite.h"

namespace kiln::store {

// The content of a database file.
struct DatabaseSize {
  int64_t bytes = 0;
  // Version of the schema.
  int64_t schema = 0;
  int64_t jobs = 0;
  // Records of both kinds.
  int64_t records = 0;
};

// Copies the database `from` to `to`, checks the structure of the copy, and compares its counts
// with those of the source. AlreadyExists if there is a file `to`, unless `replace`; that file
// stays as it was if the backup fails. DataLoss: `from` is damaged.
StatusOr<DatabaseSize> BackUpDatabase(const std::string& from, const std::string& to, bool replace);

// Counts what an open database holds. `bytes` stays 0.
StatusOr<DatabaseSize> SizeOf(sqlite::Database& database);

struct Restored {
  DatabaseSize size;
  // The file that was replaced; "" = there was none.
  std::string kept;
};

// Puts a copy of the database `from` in the place of `to`. The file that was there is kept beside
// it as TO.before-TIME, with its write-ahead log. At each moment one of the two files has the name
// `to`. A symbolic link is followed. REQUIRES: no process writes to `to`.
StatusOr<Restored> RestoreDatabase(const std::string& from, const std::string& to, absl::Time now);

}  // namespace kiln::store
