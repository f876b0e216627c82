// kiln farm status shows the processes of a farm, its workers and its jobs.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/console/terminal.h"
#include "base/server/grpc_server.h"
#include "base/text/counted.h"
#include "client/cli/farm/commands.h"
#include "client/cli/farm/farm_flags.h"
#include "client/cli/session_flags.h"
#include "client/farm/farm_probe.h"

namespace kiln::client {
namespace {

constexpr int kMinColumns = 12;
constexpr int kMaxLines = 4;

void PrintJson(const FarmState& state, const FarmAnswers& answers) {
  using Json = nlohmann::ordered_json;
  Json processes = Json::array();
  for (size_t i = 0; i < state.processes.size(); ++i) {
    const FarmProcess& process = state.processes[i];
    processes.push_back({{"name", process.name},
                         {"device", process.device},
                         {"cores", process.cores},
                         {"pid", process.process.pid},
                         {"phase", PhaseName(process.phase)},
                         {"answers", answers.trouble[i].empty()},
                         {"trouble", answers.trouble[i]},
                         {"restarts", process.restarts},
                         {"last_end", process.last_end},
                         {"addresses", process.addresses},
                         {"pages", process.pages},
                         {"log", process.log}});
  }
  const Json json = {{"folder", state.options.folder},
                     {"supervisor", state.supervisor.pid},
                     {"started_s", state.started_s},
                     {"answers", answers.AllAnswer()},
                     {"processes", processes},
                     {"builders", answers.CountWorkers(v1::BUILDER)},
                     {"runners", answers.CountWorkers(v1::RUNNER)},
                     {"jobs", answers.jobs.size()},
                     {"jobs_running", answers.CountJobs(v1::RUNNING)},
                     {"jobs_queued", answers.CountJobs(v1::QUEUED)},
                     {"notes", state.notes}};
  fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void PrintProcesses(const FarmState& state, const FarmAnswers& answers) {
  const bool placed = std::ranges::any_of(
      state.processes, [](const FarmProcess& process) { return !process.cores.empty(); });
  std::vector<Table::Column> columns = {{"Process", Table::kLeft, kMinColumns, kMaxLines},
                                        {"Pid", Table::kRight},
                                        {"Restarts", Table::kRight},
                                        {"Address", Table::kLeft, kMinColumns, kMaxLines},
                                        {"State", Table::kLeft, kMinColumns, kMaxLines}};
  if (placed) columns.push_back({"Cores", Table::kLeft, kMinColumns, kMaxLines});
  Table table(std::move(columns));
  for (size_t i = 0; i < state.processes.size(); ++i) {
    const FarmProcess& process = state.processes[i];
    std::vector<std::string> row = {
        process.name, process.process.pid == 0 ? "-" : fmt::format("{}", process.process.pid),
        fmt::format("{}", process.restarts), fmt::format("{}", fmt::join(process.addresses, " ")),
        answers.trouble[i].empty() ? "answers" : answers.trouble[i]};
    if (placed) row.push_back(process.cores.empty() ? "any" : process.cores);
    table.AddRow(std::move(row));
  }
  fmt::print("{}", table.ToString(TerminalColumns(STDOUT_FILENO)));
  for (const FarmProcess& process : state.processes) {
    if (process.name.starts_with("runner cuda")) {
      fmt::print("The {} measures on {}.\n", process.name, process.device);
    }
  }
}

void PrintFarm(const FarmState& state, const FarmAnswers& answers) {
  fmt::print(
      "The farm in {} runs since {}; process {} supervises it.\n\n", state.options.folder,
      absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::UnixEpoch() + absl::Seconds(state.started_s),
                       absl::LocalTimeZone()),
      state.supervisor.pid);
  PrintProcesses(state, answers);
  fmt::print("\n{} and {} in the tracker's list; {}, {} running, {} queued\n",
             Counted(answers.CountWorkers(v1::BUILDER), "builder"),
             Counted(answers.CountWorkers(v1::RUNNER), "runner"),
             Counted(std::ssize(answers.jobs), "job"), answers.CountJobs(v1::RUNNING),
             answers.CountJobs(v1::QUEUED));
  const char* const scheme = state.options.authority.empty() ? "http" : "https";
  for (const FarmProcess& process : state.processes) {
    if (process.pages.empty()) continue;
    fmt::print("Metrics of the {}: {}://{}/metrics\n", process.name, scheme, process.pages);
  }
  for (const FarmProcess& process : state.processes) {
    if (process.last_end.empty()) continue;
    fmt::print("The {} ended, the last time with {}: see {}\n", process.name, process.last_end,
               process.log);
  }
  for (const std::string& note : state.notes) fmt::print("Note: {}.\n", note);
}

StatusOr<int> PrintStatus(const std::string& folder, const Session& session) {
  InitGrpc();
  KILN_ASSIGN_OR_RETURN(const std::string path, FarmPath(folder));
  KILN_ASSIGN_OR_RETURN(const FarmState state, ReadRunningFarm(FarmFolder(path)));
  const FarmAnswers answers = AskFarm(state, FarmSession(state, session));
  if (session.json) {
    PrintJson(state, answers);
  } else {
    PrintFarm(state, answers);
  }
  return answers.AllAnswer() ? 0 : 1;
}

}  // namespace

Run AddFarmStatus(CLI::App& status, SessionFlags& session) {
  const auto folder = std::make_shared<std::string>();
  status.description("show the processes of the farm; exit status 0 if all of them answer");
  AddFarmFolder(status, *folder);
  session.AddJson(status);
  return [folder](const Session& session) { return PrintStatus(*folder, session); };
}

}  // namespace kiln::client
