// What kiln records delete and prune have in common: they ask before they delete, and say what went.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "client/archive.h"
#include "client/session.h"

namespace kiln::client {

struct DeletionCounts {
  int64_t records = 0;  // of both kinds
  int64_t autotvm = 0;  // of these, so many are of autotvm
};

// OK: somebody at the terminal wants it. InvalidArgument where there is none.
Status ConfirmDeletion(const DeletionCounts& planned, const std::string& place);

void PrintDeleted(const DeletionCounts& deleted, const Archive& archive, const Session& session);

}  // namespace kiln::client
