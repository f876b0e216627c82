#include "client/cli/farm/farm_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <system_error>

#include "base/clock.h"
#include "base/server/net.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kFirstState = absl::Seconds(5);
constexpr absl::Duration kPollPause = absl::Milliseconds(20);

StatusOr<std::string> Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return InvalidArgument("no such path: {}: {}", path, error.message());
  return absolute.lexically_normal().string();
}

}  // namespace

void AddFarmFolder(CLI::App& command, std::string& folder) {
  command.add_option("--folder", folder, "folder of the farm [~/.local/state/kiln/farm]");
}

StatusOr<std::string> FarmPath(const std::string& folder) {
  if (folder.empty()) return FarmFolder::DefaultPath();
  return Absolute(folder);
}

void FarmFlags::Add(CLI::App& command) {
  AddFarmFolder(command, folder);
  command.add_option("--workers", workers, "builds at a time; 0 = one per core")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  command
      .add_option("--device", devices,
                  "kinds of devices to measure on: cpu, cuda, null [those that are there]; null "
                  "may be given several times")
      ->check(CLI::IsMember({"cpu", "cuda", "null"}));
  command
      .add_option(
          "--devices", gpus,
          "which GPUs measure, each with a runner of its own: all, or indices and UUIDs, as "
          "in 0,1")
      ->type_name("LIST")
      ->capture_default_str();
  command.add_option("--db", db, "the database of jobs and records [kiln.db of the folder]");
  command.add_option("--listen", listen, "host on which tracker and scheduler listen")
      ->type_name("HOST")
      ->capture_default_str();
  CLI::Option* const with_tls = command.add_flag(
      "--tls", tls, "connect by TLS with keys of the farm, which are made if they are missing");
  command
      .add_option(
          "--authority", authority,
          "with --tls: the folder of the authority that makes the keys [keys of the folder]")
      ->type_name("FOLDER")
      ->needs(with_tls);
}

StatusOr<FarmOptions> FarmFlags::Complete() const {
  FarmOptions options;
  KILN_ASSIGN_OR_RETURN(options.folder, FarmPath(folder));
  options.db = FarmFolder(options.folder).Database();
  if (!db.empty()) {
    KILN_ASSIGN_OR_RETURN(options.db, Absolute(db));
  }
  options.host = listen;
  options.workers = workers;
  options.devices = devices;
  options.gpus = gpus;
  if (tls) {
    options.authority = FarmFolder(options.folder).Authority();
    if (!authority.empty()) {
      KILN_ASSIGN_OR_RETURN(options.authority, Absolute(authority));
    }
  } else if (!IsLoopback({listen, 0})) {
    return FailedPrecondition(
        "other machines could reach a farm that listens on {}, and its secret would go through the "
        "network in the clear; add --tls, or leave --listen out",
        listen);
  }
  return options;
}

std::vector<std::string> SuperviseWords(const FarmOptions& options) {
  std::vector<std::string> words = {
      "--folder",  options.folder, "--db",      options.db,
      "--listen",  options.host,   "--workers", fmt::format("{}", options.workers),
      "--devices", options.gpus};
  for (const std::string& device : options.devices) {
    words.insert(words.end(), {"--device", device});
  }
  if (!options.authority.empty()) {
    words.insert(words.end(), {"--tls", "--authority", options.authority});
  }
  return words;
}

StatusOr<FarmState> ReadRunningFarm(const FarmFolder& folder) {
  Clock& clock = Clock::Real();
  const double end = clock.MonotonicSeconds() + absl::ToDoubleSeconds(kFirstState);
  while (true) {
    const bool locked = folder.IsLocked(clock);
    auto state = ReadFarmState(folder.StateFile());
    if (state.ok() && state->machine != HostName()) {
      return FailedPrecondition("the farm in {} belongs to the machine {}; this is {}",
                                folder.path(), state->machine, HostName());
    }
    if (!locked && state.ok()) {
      return NotFound("the farm in {} has ended without `kiln farm down`; `kiln farm up` starts it",
                      folder.path());
    }
    if (!locked && state.status().code() == absl::StatusCode::kNotFound) {
      return NotFound("no farm runs in {}; `kiln farm up` starts one", folder.path());
    }
    // A state that an earlier supervisor left is replaced within moments.
    if (state.ok() && IsRunning(state->supervisor)) return state;
    if (state.status().code() == absl::StatusCode::kDataLoss) return state.status();
    if (clock.MonotonicSeconds() > end) {
      return Unavailable("the farm in {} starts, and does not say how: see {}", folder.path(),
                         folder.LogFile("supervisor"));
    }
    clock.SleepFor(kPollPause);
  }
}

}  // namespace kiln::client
