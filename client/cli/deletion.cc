#include "client/cli/deletion.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/terminal.h"
#include "base/units.h"

namespace kiln::client {

Status ConfirmDeletion(const DeletionCounts& planned, const std::string& place) {
  const std::string of_autotvm =
      planned.autotvm == 0 ? "" : fmt::format(" ({} of autotvm)", FormatCount(planned.autotvm));
  if (!IsTerminal(STDIN_FILENO)) {
    return InvalidArgument("{} records of {}{} would be deleted: say --yes", planned.records, place,
                           of_autotvm);
  }
  fmt::print("delete {} records of {}{}? [y/N] ", FormatCount(planned.records), place, of_autotvm);
  std::fflush(stdout);
  char answer[16] = {};
  const bool answered = std::fgets(answer, sizeof(answer), stdin) != nullptr;
  if (answered && (answer[0] == 'y' || answer[0] == 'Y')) return OkStatus();
  return Cancelled("nothing was deleted");
}

void PrintDeleted(const DeletionCounts& deleted, const Archive& archive, const Session& session) {
  if (session.json) {
    fmt::print("{{\"deleted\":{},\"autotvm\":{}}}\n", deleted.records, deleted.autotvm);
    return;
  }
  fmt::print("{} records deleted from {}\n", FormatCount(deleted.records), archive.Name());
  if (deleted.autotvm == 0) return;
  fmt::print("{} of them are records of autotvm\n", FormatCount(deleted.autotvm));
}

}  // namespace kiln::client
