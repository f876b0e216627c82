// kiln farm down ends a farm in order.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/process/process_identity.h"
#include "client/cli/farm/commands.h"
#include "client/cli/farm/farm_flags.h"
#include "client/cli/session_flags.h"
#include "client/farm/farm_probe.h"
#include "client/farm/process_end.h"

namespace kiln::client {
namespace {

// Longer than the supervisor gives its daemons one after the other.
constexpr absl::Duration kPatience = absl::Seconds(45);

// Ends the supervisor, which ends the daemons in order, or is killed with them.
Status EndSupervisor(const FarmFolder& folder, const FarmState& state) {
  const Status asked = SignalProcess(state.supervisor, SIGTERM);
  if (!asked.ok() && asked.code() != absl::StatusCode::kNotFound) return asked;
  if (folder.Lock(kPatience, Clock::Real()).ok()) return OkStatus();
  fmt::print(stderr, "kiln: the farm did not end within {}; its processes are killed\n",
             absl::FormatDuration(kPatience));
  (void)SignalProcess(state.supervisor, SIGKILL);
  KILN_RETURN_IF_ERROR(WaitForEnd(
      {.name = "supervisor", .process = state.supervisor, .log = folder.LogFile("supervisor")},
      Clock::Real()));
  return folder.Lock(kPatience, Clock::Real()).status();
}

// Removes the file of a farm that was killed, once nothing of it runs.
void Forget(const FarmFolder& folder) {
  const auto left = ReadFarmState(folder.StateFile());
  if (!left.ok()) return;
  for (const FarmProcess& process : left->processes) {
    if (IsRunning(process.process)) return;
  }
  const auto lock = folder.Lock(absl::ZeroDuration(), Clock::Real());
  if (lock.ok()) (void)RemoveFile(folder.StateFile());
}

Status Down(const std::string& folder_flag, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const std::string path, FarmPath(folder_flag));
  const FarmFolder folder(path);
  const auto running = ReadRunningFarm(folder);
  if (running.status().code() == absl::StatusCode::kNotFound) {
    fmt::print("{}\n", Message(running.status()));
    Forget(folder);
    return OkStatus();
  }
  KILN_RETURN_IF_ERROR(running.status());
  const FarmState& state = *running;
  const int unfinished = [&] {
    const FarmAnswers answers = AskFarm(state, FarmSession(state, session));
    return answers.CountJobs(v1::RUNNING) + answers.CountJobs(v1::QUEUED);
  }();
  KILN_RETURN_IF_ERROR(EndSupervisor(folder, state));
  std::vector<std::string> ended;
  for (const FarmProcess& process : state.processes) {
    if (process.process.pid == 0) continue;
    KILN_RETURN_IF_ERROR(WaitForEnd(process, Clock::Real()));
    ended.push_back(fmt::format("{} ({})", process.name, process.process.pid));
  }
  fmt::print("The farm in {} has ended: {}.\n", path, fmt::join(ended, ", "));
  if (unfinished > 0) {
    fmt::print("{} not finished; the next `kiln farm up` goes on with {}.\n",
               unfinished == 1 ? "1 job is" : fmt::format("{} jobs are", unfinished),
               unfinished == 1 ? "it" : "them");
  }
  return OkStatus();
}

}  // namespace

Run AddFarmDown(CLI::App& down, SessionFlags& /*session*/) {
  const auto folder = std::make_shared<std::string>();
  down.description("end the farm, the scheduler first, and wait until all has ended");
  AddFarmFolder(down, *folder);
  return Plain([folder](const Session& session) { return Down(*folder, session); });
}

}  // namespace kiln::client
