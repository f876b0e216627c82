// kiln choice list prints the schedules that are pinned.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/console/terminal.h"
#include "base/text/utf8.h"
#include "client/archive.h"
#include "client/cli/computations.h"
#include "client/cli/schedules/commands.h"
#include "client/cli/session_flags.h"
#include "client/view/json.h"
#include "compiler/schedule/step.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

// Least columns of tasks and targets in tables.
constexpr int kMinColumns = 10;

std::string NameOfPinned(const store::PinnedSchedule& pinned, const Names& names) {
  const auto found = names.by_id.find(pinned.workload_id);
  return found == names.by_id.end() ? std::string("-") : found->second;
}

size_t StepsOf(const store::PinnedSchedule& pinned) {
  const auto steps = schedule::ParseSteps(pinned.steps);
  return steps.ok() ? steps->size() : 0;
}

Status ListPinned(const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(const auto all, archive->PinnedSchedules(""));
  KILN_ASSIGN_OR_RETURN(const auto jobs, archive->JobsWithoutResults());
  const Names names = NamesOf(jobs);
  Table table({{"Task", Table::kLeft, kMinColumns},
               {"Target", Table::kLeft, kMinColumns},
               {"Steps", Table::kRight},
               {"Set"},
               {"Computation", Table::kLeft, kMinColumns}});
  for (const store::PinnedSchedule& pinned : all) {
    if (session.json) {
      fmt::print("{{\"workload_id\":{},\"name\":{},\"target\":{},\"set_s\":{},\"steps\":{}}}\n",
                 JsonString(pinned.workload_id), JsonString(NameOfPinned(pinned, names)),
                 JsonString(pinned.target), pinned.pinned_s, JsonString(pinned.steps));
      continue;
    }
    table.AddRow({NameOfPinned(pinned, names), OneLine(ShortTarget(pinned.target)),
                  fmt::format("{}", StepsOf(pinned)), TimeText(pinned.pinned_s),
                  pinned.workload_id});
  }
  if (!session.json) fmt::print("{}", table.ToString(OutputColumns(STDOUT_FILENO)));
  return OkStatus();
}

}  // namespace

Run AddChoiceList(CLI::App& list, SessionFlags& session) {
  list.description("the schedules that are set");
  session.AddPlace(list);
  return Plain(ListPinned);
}

}  // namespace kiln::client
