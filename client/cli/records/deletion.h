// Shared by kiln records delete and kiln db prune: they ask before they delete, and report
// the deletion.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "client/archive.h"
#include "client/session.h"

namespace kiln::client {

struct DeletionCounts {
  // Records of both kinds.
  int64_t records = 0;
  // Records of autotvm; `records` includes them.
  int64_t autotvm = 0;
};

// Returns OK if the user at the terminal agrees. InvalidArgument if there is no terminal.
Status ConfirmDeletion(const DeletionCounts& planned, const std::string& place);

// Says what would be deleted.
void PrintPlanned(const DeletionCounts& planned, const Archive& archive, const Session& session);

void PrintDeleted(const DeletionCounts& deleted, const Archive& archive, const Session& session);

}  // namespace kiln::client
