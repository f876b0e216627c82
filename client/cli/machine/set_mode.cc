#include "client/cli/machine/set_mode.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string_view>

#include "base/clock.h"
#include "base/process/user_name.h"
#include "base/text/utf8.h"
#include "client/cli/command.h"
#include "client/cli/machine/mode_rows.h"
#include "client/client.h"
#include "client/service_call.h"
#include "client/view/json.h"
#include "rpc/asked_by.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

// A worker hears within half a second, unless there are very many.
constexpr int kLooks = 30;
constexpr absl::Duration kLook = absl::Milliseconds(100);

struct ModeCommand {
  std::string_view name;
  v1::WorkerMode mode;
  std::string_view help;
  // The consequence, in words.
  std::string_view then;
};

constexpr ModeCommand kModeCommands[] = {
    {"pause", v1::WORKER_PAUSED, "stop its trials at once, and give its device back",
     "its trials in hand are stopped, and are done again elsewhere or later"},
    {"drain", v1::WORKER_DRAINS, "end what it has in hand, and take nothing new",
     "it ends the trials in hand; `kiln workers` says drained when it has"},
    {"cordon", v1::WORKER_CORDONED, "give it to no further job; jobs that have it keep it",
     "jobs that have it keep it, and no further job gets it"},
    {"resume", v1::WORKER_SERVES, "let it serve again after any of these",
     "it takes trials unless its own hours or its canary speak against it"},
};

const ModeCommand& CommandOf(v1::WorkerMode mode) {
  for (const ModeCommand& command : kModeCommands) {
    if (command.mode == mode) return command;
  }
  return kModeCommands[0];
}

StatusOr<std::unique_ptr<SchedulerClient>> SchedulerOf(const Session& session) {
  if (!session.scheduler.empty()) return session.Connect();
  return InvalidArgument(
      "workers are paused, drained, cordoned and resumed through their farm's scheduler; name it "
      "by --scheduler HOST:PORT or KILN_SCHEDULER");
}

struct Found {
  v1::WorkerState worker;
  uint32_t busy = 0;
};

StatusOr<Found> Look(const std::string& address, const FarmAccess& access, const std::string& id) {
  // A scheduler passes on the list of its tracker.
  KILN_ASSIGN_OR_RETURN(const v1::ListReply list, ListWorkers(address, access));
  for (int i = 0; i < list.workers_size(); ++i) {
    if (list.workers(i).id() != id) continue;
    return Found{list.workers(i), i < list.busy_slots_size() ? list.busy_slots(i) : 0};
  }
  return NotFound("worker {} was asked, and is gone now", id);
}

// Returns the worker once it has heard of the wish, or as it is after three seconds.
StatusOr<Found> LookUntilHeard(const SchedulerClient& client, const Session& session,
                               const std::string& id, v1::WorkerMode mode) {
  KILN_ASSIGN_OR_RETURN(const FarmAccess access, session.Access());
  KILN_ASSIGN_OR_RETURN(Found found, Look(client.address(), access, id));
  for (int i = 1; i < kLooks && found.worker.asked_mode() != mode; ++i) {
    Clock::Real().SleepFor(kLook);
    KILN_ASSIGN_OR_RETURN(found, Look(client.address(), access, id));
  }
  return found;
}

void Print(const Found& found, v1::WorkerMode asked) {
  const v1::WorkerState& worker = found.worker;
  if (worker.asked_mode() != asked) {
    fmt::print("{} {} is asked, and has not answered yet; `kiln workers` shows when it has\n",
               WorkerKindName(worker.kind()), Printable(worker.address()));
    return;
  }
  const std::string reason = Printable(worker.mode_reason());
  fmt::print("{} {} {}{}: {}\n", WorkerKindName(worker.kind()), Printable(worker.address()),
             ModeWord(worker, found.busy), reason.empty() ? "" : " (" + reason + ")",
             CommandOf(asked).then);
}

}  // namespace

std::shared_ptr<ModeFlags> AddModeCommands(CLI::App& workers) {
  auto flags = std::make_shared<ModeFlags>();
  for (const ModeCommand& row : kModeCommands) {
    CLI::App* const command = workers.add_subcommand(std::string(row.name), std::string(row.help));
    command
        ->add_option("worker", flags->worker,
                     "id of the worker, a part of the id that no other has, or its HOST:PORT")
        ->required();
    command->add_option("--why", flags->why, "a reason for others to read: 128 bytes at most")
        ->type_name("TEXT");
    // The flags of the place may stand behind the worker.
    command->fallthrough();
    command->callback([flags = flags.get(), mode = row.mode] { flags->mode = mode; });
  }
  return flags;
}

Status SetMode(const ModeFlags& flags, const Session& session) {
  const v1::WorkerMode mode = flags.mode.value_or(v1::WORKER_SERVES);
  v1::SetWorkerModeRequest request;
  request.set_worker(flags.worker);
  request.set_mode(mode);
  request.set_user(PrintAskedBy({.name = UserName(), .why = OneLine(flags.why)}));
  KILN_ASSIGN_OR_RETURN(const auto client, SchedulerOf(session));
  KILN_ASSIGN_OR_RETURN(const v1::SetWorkerModeReply reply,
                        Call(*client->stub(), &v1::Scheduler::Stub::SetWorkerMode, request));
  for (const std::string& id : reply.workers()) {
    KILN_ASSIGN_OR_RETURN(const Found found, LookUntilHeard(*client, session, id, mode));
    if (session.json) {
      fmt::print("{}\n", JsonOf(found.worker));
    } else {
      Print(found, mode);
    }
  }
  return OkStatus();
}

}  // namespace kiln::client
