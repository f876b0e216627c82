// The records that ship with this Kiln, and the archive that commands ask for best programs.
//
// The file default.records is a part of the program: it is there wherever the program is, and is
// never of another version than the program. A file of no bytes has no records.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/archive.h"
#include "client/session.h"
#include "store/shipped_file.h"

namespace kiln::client {

struct DefaultRecords {
  // True: only the session's own records are asked.
  bool left_out = false;
  // A file of kiln records ship, in place of the records in the program; "": there is none.
  std::string path;

  // Returns "the records shipped with Kiln", or "the records of FILE".
  std::string Name() const;
  // Returns no records if they are left out. Errors name the file.
  StatusOr<std::vector<store::ShippedRecord>> Read() const;
};

// Returns the bytes of the file in this program.
std::string_view DefaultRecordsFile();

// Opens the records of the session for queries for best programs (shipped_archive.h). NotFound if
// there are neither records of the session nor shipped ones.
StatusOr<std::unique_ptr<Archive>> OpenBestRecords(const Session& session,
                                                   const DefaultRecords& defaults);

}  // namespace kiln::client
