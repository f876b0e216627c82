// kiln workers lists a tracker's workers and its queue, or asks for the mode of a worker.
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "client/cli/machine/commands.h"
#include "client/cli/machine/mode_rows.h"
#include "client/cli/machine/set_mode.h"
#include "client/cli/session_flags.h"
#include "client/client.h"
#include "client/view/json.h"
#include "client/view/printable.h"
#include "device/calibration.h"
#include "device/device_state.h"
#include "device/unlike_canary.h"
#include "rpc/device_message.h"
#include "rpc/device_state_message.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

// Least columns of a cell that may be cut.
constexpr int kMinColumns = 8;
constexpr int kMaxLines = 4;

struct WorkersFlags {
  // The address given on the command line.
  std::optional<std::string> tracker;
};

// Returns a line for each kind of device that runners announce.
std::string DevicesText(const v1::ListReply& reply) {
  std::set<std::string> lines;
  for (const v1::WorkerState& worker : reply.workers()) {
    if (worker.kind() != v1::RUNNER) continue;
    const auto model = DeviceModelOf(worker);
    if (!model.ok()) continue;
    const std::string summary = device::DeviceSummary(*model);
    // The device of target null has no summary.
    if (summary.empty()) continue;
    lines.insert(fmt::format("{}: {}; unless the scheduler keeps a row of it, {}\n", model->name,
                             summary,
                             device::CalibrationNote(device::CalibrationOf(*model).source)));
  }
  return fmt::format("{}", fmt::join(lines, ""));
}

// Returns the ids of the runners whose canaries are unlike those of other devices of their model.
std::set<std::string> UnlikeRunners(const v1::ListReply& reply) {
  std::map<std::string, std::vector<const v1::WorkerState*>> of_model;
  for (const v1::WorkerState& worker : reply.workers()) {
    if (worker.kind() == v1::RUNNER) of_model[worker.device()].push_back(&worker);
  }
  std::set<std::string> ids;
  for (const auto& [model, runners] : of_model) {
    std::vector<double> canaries_s;
    for (const v1::WorkerState* const runner : runners) canaries_s.push_back(runner->canary_s());
    const bool is_gpu = runners[0]->target().starts_with("cuda");
    const std::vector<bool> unlike = device::UnlikeCanaries(
        canaries_s, is_gpu ? device::kUnlikeGpuShare : device::kUnlikeCpuShare);
    for (size_t i = 0; i < runners.size(); ++i) {
      if (unlike[i]) ids.insert(runners[i]->id());
    }
  }
  return ids;
}

// Returns a line for each runner that has timed its canary or knows its device's state.
std::string StatesText(const v1::ListReply& reply) {
  std::string text;
  const std::set<std::string> unlike = UnlikeRunners(reply);
  for (const v1::WorkerState& worker : reply.workers()) {
    std::string state = device::PrintDeviceState(DeviceStateOf(worker.device_state()));
    if (worker.canary_s() > 0) {
      state +=
          fmt::format("{}canary {}", state.empty() ? "" : ", ", FormatSeconds(worker.canary_s()));
    }
    if (unlike.contains(worker.id())) state += ", unlike other devices of its model";
    if (worker.drifts_size() > 0) {
      state += fmt::format(", {} in the last 24 hours", Counted(worker.drifts_size(), "drift"));
    }
    if (!state.empty()) text += fmt::format("{}: {}\n", worker.address(), state);
  }
  return text;
}

// Returns a table of the workers that do not serve, that serve in part, or whose mode an operator
// has set; "" = there are none.
std::string ModesText(const v1::ListReply& reply, int columns) {
  Table table({{"Address"},
               {"Mode"},
               {"Since"},
               {"By", Table::kLeft, kMinColumns},
               {"Why", Table::kLeft, kMinColumns, kMaxLines}});
  for (const ModeRow& row : ModeRows(reply)) {
    table.AddRow({row.address, std::string(row.mode),
                  row.since_s.has_value() ? ShortTimeText(*row.since_s) : "-", row.by, row.why});
  }
  return table.rows() == 0 ? "" : table.ToString(columns);
}

// Returns a line for each worker whose sandbox is known, and one for each of its gaps.
std::string SandboxText(const v1::ListReply& reply) {
  std::string text;
  for (const v1::WorkerState& worker : reply.workers()) {
    if (worker.sandbox().empty()) continue;
    text += fmt::format("{}: {}\n", worker.address(), fmt::join(worker.sandbox(), ", "));
    for (const std::string& gap : worker.sandbox_gaps()) text += fmt::format("  gap: {}\n", gap);
  }
  return text;
}

// A service that lists the workers: the tracker, or a scheduler, which passes on its tracker's
// list.
struct ListedBy {
  std::string_view what = "tracker";
  std::string address = "127.0.0.1:9190";
};

ListedBy FindList(const WorkersFlags& flags, const Session& session) {
  ListedBy list;
  if (flags.tracker.has_value()) {
    list.address = *flags.tracker;
    return list;
  }
  std::string tracker;
  ReadVariable("KILN_TRACKER", tracker);
  if (!tracker.empty()) {
    list.address = tracker;
  } else if (!session.scheduler.empty()) {
    list = {"scheduler", session.scheduler};
  }
  return list;
}

// Asks for the list. Sets `list.what` to what answers: the address of a tracker may be that of a
// scheduler.
StatusOr<v1::ListReply> AskForList(const FarmAccess& access, ListedBy& list) {
  const auto connect = [&] { return SchedulerClient::Connect(list.address, access).status(); };
  if (list.what == "scheduler") {
    KILN_RETURN_IF_ERROR(connect());
    return ListWorkers(list.address, access);
  }
  KILN_ASSIGN_OR_RETURN(v1::ListReply reply, ListWorkers(list.address, access));
  if (connect().ok()) list.what = "scheduler";
  return reply;
}

Status PrintWorkers(const WorkersFlags& flags, const Session& session) {
  ListedBy list = FindList(flags, session);
  KILN_ASSIGN_OR_RETURN(const FarmAccess access, session.Access());
  KILN_ASSIGN_OR_RETURN(v1::ListReply reply, AskForList(access, list));
  if (session.json) {
    fmt::print("{}\n", JsonOf(reply));
    return OkStatus();
  }
  MakePrintable(reply);
  Table workers({{"Address"},
                 {"Kind"},
                 {"Device", Table::kLeft, kMinColumns, kMaxLines},
                 {"Keys", Table::kLeft, kMinColumns, kMaxLines},
                 {"Busy", Table::kRight},
                 {"Slots", Table::kRight},
                 {"Trials", Table::kRight}});
  for (int i = 0; i < reply.workers_size(); ++i) {
    const v1::WorkerState& worker = reply.workers(i);
    std::string keys;
    for (const std::string& key : worker.keys()) keys += (keys.empty() ? "" : ", ") + key;
    const uint32_t busy = i < reply.busy_slots_size() ? reply.busy_slots(i) : 0;
    workers.AddRow({worker.address(), std::string(WorkerKindName(worker.kind())), worker.device(),
                    keys, fmt::format("{}", busy), fmt::format("{}", worker.slots()),
                    fmt::format("{}", worker.trials_done())});
  }
  Table queue({{"Key", Table::kLeft, kMinColumns, kMaxLines},
               {"Kind"},
               {"Total", Table::kRight},
               {"Free", Table::kRight},
               {"Pending", Table::kRight}});
  for (const v1::KeyState& key : reply.keys()) {
    queue.AddRow({key.key(), std::string(WorkerKindName(key.kind())),
                  fmt::format("{}", key.total()), fmt::format("{}", key.free()),
                  fmt::format("{}", key.pending())});
  }
  const int columns = TerminalColumns(STDOUT_FILENO);
  const std::string devices = DevicesText(reply);
  fmt::print("{} {}\n\n", list.what, list.address);
  if (workers.rows() == 0) {
    fmt::print("no workers: start kiln builder and kiln runner with --tracker {}\n",
               list.what == "tracker" ? list.address : "HOST:PORT");
  } else {
    fmt::print("servers\n{}", workers.ToString(columns));
  }
  if (queue.rows() > 0) fmt::print("\nqueue\n{}", queue.ToString(columns));
  if (const std::string modes = ModesText(reply, columns); !modes.empty()) {
    fmt::print("\nmodes\n{}", modes);
  }
  if (!devices.empty()) fmt::print("\ndevices\n{}", devices);
  if (const std::string states = StatesText(reply); !states.empty()) {
    fmt::print("\nstates\n{}", states);
  }
  if (const std::string sandbox = SandboxText(reply); !sandbox.empty()) {
    fmt::print("\nsandbox\n{}", sandbox);
  }
  return OkStatus();
}

}  // namespace

Run AddWorkers(CLI::App& workers, SessionFlags& session) {
  const auto flags = std::make_shared<WorkersFlags>();
  workers.description("list the workers and who waits; pause, drain, cordon or resume one");
  workers
      .add_option_function<std::string>(
          "--tracker", [flags = flags.get()](const std::string& value) { flags->tracker = value; },
          "address of the tracker [127.0.0.1:9190]")
      ->type_name("HOST:PORT");
  session.AddScheduler(workers);
  const std::shared_ptr<ModeFlags> mode = AddModeCommands(workers);
  return Plain([flags, mode](const Session& session) {
    return mode->mode.has_value() ? SetMode(*mode, session) : PrintWorkers(*flags, session);
  });
}

}  // namespace kiln::client
