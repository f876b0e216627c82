// kiln workers lists a tracker's workers and its queue.
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "client/cli/machine/commands.h"
#include "client/cli/session_flags.h"
#include "client/client.h"
#include "client/view/format.h"
#include "client/view/json.h"
#include "client/view/printable.h"
#include "device/calibration.h"
#include "device/device_state.h"
#include "rpc/device_message.h"
#include "rpc/device_state_message.h"

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

// Returns a line for each runner that has timed its canary or knows its device's state.
std::string StatesText(const v1::ListReply& reply) {
  std::string text;
  for (const v1::WorkerState& worker : reply.workers()) {
    std::string state = device::PrintDeviceState(DeviceStateOf(worker.device_state()));
    if (worker.canary_s() > 0) {
      state +=
          fmt::format("{}canary {}", state.empty() ? "" : ", ", FormatSeconds(worker.canary_s()));
    }
    if (worker.drifts_size() > 0) {
      state += fmt::format(", {} in the last 24 hours", Counted(worker.drifts_size(), "drift"));
    }
    if (!state.empty()) text += fmt::format("{}: {}\n", worker.address(), state);
  }
  return text;
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

Status PrintWorkers(const WorkersFlags& flags, const Session& session) {
  std::string tracker = "127.0.0.1:9190";
  ReadVariable("KILN_TRACKER", tracker);
  tracker = flags.tracker.value_or(tracker);
  KILN_ASSIGN_OR_RETURN(const FarmAccess access, session.Access());
  KILN_ASSIGN_OR_RETURN(v1::ListReply reply, ListWorkers(tracker, access));
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
  if (workers.rows() == 0) {
    fmt::print("tracker {}\n\nno workers: start kiln builder and kiln runner with --tracker {}\n",
               tracker, tracker);
  } else {
    fmt::print("tracker {}\n\nservers\n{}", tracker, workers.ToString(columns));
  }
  if (queue.rows() > 0) fmt::print("\nqueue\n{}", queue.ToString(columns));
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
  workers.description("list a tracker's workers and its queue");
  workers
      .add_option_function<std::string>(
          "--tracker", [flags = flags.get()](const std::string& value) { flags->tracker = value; },
          "address of the tracker [127.0.0.1:9190]")
      ->type_name("HOST:PORT");
  session.AddAccess(workers);
  session.AddJson(workers);
  return Plain([flags](const Session& session) { return PrintWorkers(*flags, session); });
}

}  // namespace kiln::client
