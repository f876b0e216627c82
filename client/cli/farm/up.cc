// kiln farm up starts a farm in the background.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/private_file.h"
#include "base/process/background.h"
#include "base/process/subprocess.h"
#include "base/server/net.h"
#include "base/text/counted.h"
#include "base/text/shell_word.h"
#include "client/cli/farm/commands.h"
#include "client/cli/farm/farm_flags.h"
#include "client/cli/session_flags.h"
#include "client/core_list.h"
#include "client/farm/farm_probe.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kPollPause = absl::Milliseconds(20);
// The daemons serve by then; this is for their first announcements.
constexpr absl::Duration kAnswerPatience = absl::Seconds(30);

// Returns what the supervisor has printed as its last line, without the program's name.
std::string LastWords(const std::string& log, size_t begin) {
  std::string text = ReadFile(log).value_or("");
  text.erase(0, std::min(begin, text.size()));
  while (text.ends_with('\n')) text.pop_back();
  text = text.substr(text.rfind('\n') + 1);
  if (text.starts_with("kiln: ")) text.erase(0, 6);
  return text;
}

// Starts the supervisor. Returns once all daemons serve.
StatusOr<FarmState> StartFarm(const FarmOptions& options) {
  const FarmFolder folder(options.folder);
  KILN_RETURN_IF_ERROR(MakePrivateDir(folder.path()));
  const std::string log = folder.LogFile("supervisor");
  const int64_t log_begin = FileSize(log).value_or(0);
  KILN_ASSIGN_OR_RETURN(const std::string executable, CurrentExecutable());
  std::vector<std::string> argv = {executable, "farm", "supervise"};
  for (std::string& word : SuperviseWords(options)) argv.push_back(std::move(word));
  KILN_ASSIGN_OR_RETURN(const pid_t supervisor, StartInBackground(argv, log));
  while (true) {
    auto state = ReadFarmState(folder.StateFile());
    if (state.ok() && state->up && state->supervisor.pid == supervisor) return state;
    if (BackgroundEnded(supervisor)) {
      return FailedPrecondition("the farm did not start: {}",
                                LastWords(log, static_cast<size_t>(log_begin)));
    }
    Clock::Real().SleepFor(kPollPause);
  }
}

// Waits until every daemon answers that has not died meanwhile.
Status WaitForAnswers(const FarmFolder& folder, const Session& session) {
  Clock& clock = Clock::Real();
  const double end = clock.MonotonicSeconds() + absl::ToDoubleSeconds(kAnswerPatience);
  while (true) {
    KILN_ASSIGN_OR_RETURN(const FarmState state, ReadRunningFarm(folder));
    const FarmAnswers answers = AskDaemons(state, FarmSession(state, session));
    if (state.up && answers.ServingAnswer(state)) return OkStatus();
    if (clock.MonotonicSeconds() > end) {
      return Unavailable("the farm runs, and does not answer; see `kiln farm status` and {}",
                         folder.LogFile("supervisor"));
    }
    clock.SleepFor(kPollPause);
  }
}

// Prints what to type so that another machine measures for the farm.
void PrintSecondBox(const FarmState& state, const std::string& program) {
  const std::string& host = state.options.host;
  if (IsLoopback({host, 0})) {
    fmt::print(
        "Only this machine reaches it; other machines reach a farm that was started with\n"
        "--tls --listen 0.0.0.0.\n");
    return;
  }
  const std::string authority = ShellWord(state.options.authority);
  const bool all = host == "0.0.0.0" || host == "::";
  const auto tracker = ParseHostPort(state.AddressOf("tracker"));
  const int port = tracker.ok() ? tracker->port : 0;
  fmt::print(
      "To measure on another machine, too; here it is box2:\n"
      "  {} keys issue box2 --role work --authority {}\n"
      "  scp -rp {} box2:\n"
      "  box2$ {} runner --keys box2 --listen 0.0.0.0:0 --tracker {}\n",
      program, authority, ShellWord(JoinPath(state.options.authority, "box2")), program,
      HostPort{all ? HostName() : host, port}.ToString());
}

// Returns what a process does on which cores, with blanks before it; "" if it has no place.
std::string PlaceText(const FarmState& state, const FarmProcess& process) {
  std::string text;
  if (!process.addresses.empty() && process.name.starts_with("runner cuda")) {
    text = "  " + process.device;
  }
  if (process.phase != FarmProcess::Phase::kServing) {
    text += fmt::format("  {}", PhaseName(process.phase));
  }
  if (process.cores.empty()) return text;
  text += fmt::format("  on cores {}", process.cores);
  if (process.name != "builder") return text;
  const auto cores = ParseCoreList(process.cores);
  const int64_t builds = state.options.workers > 0 ? state.options.workers
                         : cores.ok()              ? std::ssize(*cores)
                                                   : 0;
  return text + fmt::format(", {} at a time", Counted(builds, "build"));
}

void PrintFarm(const FarmState& state, const Session& session, bool new_one) {
  const FarmFolder folder(state.options.folder);
  const bool usual = folder.path() == FarmFolder::DefaultPath().value_or("");
  const std::string of = usual ? "" : " --folder " + ShellWord(folder.path());
  const bool with_keys = !state.user_keys.empty();
  fmt::print("The farm in {} {}:\n", folder.path(), new_one ? "is up" : "runs already");
  for (const FarmProcess& process : state.processes) {
    fmt::print("  {:<14} {}{}\n", process.name, fmt::join(process.addresses, " "),
               PlaceText(state, process));
  }
  for (const std::string& note : state.notes) fmt::print("Note: {}.\n", note);
  fmt::print(
      "\n"
      "To use it, in any shell of yours on this machine:\n"
      "  export KILN_SCHEDULER={} KILN_TRACKER={}\n"
      "  export {}={}\n"
      "  {} tune matmul --args 512,512,512\n"
      "\n"
      "{} farm status{} shows it, and {} farm down{} ends it.\n",
      state.AddressOf("scheduler"), state.AddressOf("tracker"),
      with_keys ? "KILN_KEYS" : "KILN_SECRET_FILE",
      ShellWord(with_keys ? state.user_keys : folder.SecretFile()), session.program,
      session.program, of, session.program, of);
  if (!with_keys) return;
  fmt::print("\n");
  PrintSecondBox(state, session.program);
}

Status Up(const FarmFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const FarmOptions options, flags.Complete());
  const FarmFolder folder(options.folder);
  const auto running = ReadRunningFarm(folder);
  const bool new_one = running.status().code() == absl::StatusCode::kNotFound;
  if (!new_one) KILN_RETURN_IF_ERROR(running.status());
  if (!new_one && running->options != options) {
    return FailedPrecondition(
        "the farm in {} runs with other options; end it with `kiln farm down`, or name another "
        "--folder",
        folder.path());
  }
  if (new_one) KILN_RETURN_IF_ERROR(StartFarm(options).status());
  KILN_RETURN_IF_ERROR(WaitForAnswers(folder, session));
  KILN_ASSIGN_OR_RETURN(const FarmState state, ReadRunningFarm(folder));
  if (session.json) {
    fmt::print("{}", FarmStateText(state));
  } else {
    PrintFarm(state, session, new_one);
  }
  return OkStatus();
}

}  // namespace

Run AddFarmUp(CLI::App& up, SessionFlags& session) {
  const auto flags = std::make_shared<FarmFlags>();
  up.description("start a farm on this machine, in the background, and print how to use it");
  flags->Add(up);
  session.AddJson(up);
  return Plain([flags](const Session& session) { return Up(*flags, session); });
}

}  // namespace kiln::client
