#include "client/cli/records/deletion.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "base/text/units.h"

namespace kiln::client {

Status ConfirmDeletion(const DeletionCounts& planned, const std::string& place) {
  const std::string of_autotvm =
      planned.autotvm == 0 ? "" : fmt::format(" ({} of autotvm)", FormatCount(planned.autotvm));
  if (!IsTerminal(STDIN_FILENO)) {
    return InvalidArgument("{} of {}{} would be deleted: say --yes",
                           Counted(planned.records, "record"), place, of_autotvm);
  }
  fmt::print("delete {} of {}{}? [y/N] ", Counted(planned.records, "record"), place, of_autotvm);
  std::fflush(stdout);
  char answer[16] = {};
  const bool answered = std::fgets(answer, sizeof(answer), stdin) != nullptr;
  if (answered && (answer[0] == 'y' || answer[0] == 'Y')) return OkStatus();
  return Cancelled("nothing was deleted");
}

void PrintPlanned(const DeletionCounts& planned, const Archive& archive, const Session& session) {
  if (session.json) {
    fmt::print("{{\"would_delete\":{},\"autotvm\":{}}}\n", planned.records, planned.autotvm);
    return;
  }
  fmt::print("{} of {} would be deleted\n", Counted(planned.records, "record"), archive.Name());
}

void PrintDeleted(const DeletionCounts& deleted, const Archive& archive, const Session& session) {
  if (session.json) {
    fmt::print("{{\"deleted\":{},\"autotvm\":{}}}\n", deleted.records, deleted.autotvm);
    return;
  }
  fmt::print("{} deleted from {}\n", Counted(deleted.records, "record"), archive.Name());
  if (deleted.autotvm == 0) return;
  fmt::print("{} of them {} of autotvm\n", FormatCount(deleted.autotvm), IsOrAre(deleted.autotvm));
}

}  // namespace kiln::client
