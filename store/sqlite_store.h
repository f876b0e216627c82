// The Store in a SQLite file, kiln.db. Schema: docs/records.md.
//
// One connection writes, up to 8 others read beside it (connection_pool.h). Other processes may
// read the file meanwhile (`sqlite3 kiln.db`, another Kiln that opens it read-only), and a second
// writer waits its turn. Never run two schedulers on one file: both would resume its jobs. FILE-wal
// and FILE-shm stand beside FILE while it is open, and after a crash: they belong to the database,
// so copy all three or none. A local file system is needed.
//
// Cost: AddRecord is one fsync; best-record queries are one index look-up for each computation and
// target, however many records there are.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace kiln::store {

// Makes the file if it does not exist (mode kCreate) and brings its schema up to date. Errors: see
// sqlite.h.
StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path,
                                                 const sqlite::OpenOptions& options = {});

}  // namespace kiln::store
