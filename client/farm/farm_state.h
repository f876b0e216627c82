// The state of a farm on this machine, in a file: which processes it has, where they listen, how
// often they were started again. The supervisor writes the file (client/farm/supervisor.h); the
// commands of `kiln farm` read it.
//
// Values, and pure functions but for those of the file. The file has JSON, mode 0600, no secret.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/process/process_identity.h"
#include "base/status.h"

namespace kiln::client {

// The usual ports.
inline constexpr int kTrackerPort = 9190;
inline constexpr int kSchedulerPort = 9290;
// The pages of tracker and scheduler.
inline constexpr int kTrackerPagesPort = 9191;
inline constexpr int kSchedulerPagesPort = 9291;

// The wishes of the user.
struct FarmOptions {
  // The folder of the farm, an absolute path.
  std::string folder;
  std::string db;
  // Host on which tracker and scheduler listen.
  std::string host = "127.0.0.1";
  // Builds at a time; 0 = one per core.
  int workers = 0;
  // Kinds of devices: cpu, cuda, null. Empty: those that are there.
  std::vector<std::string> devices = {};
  // GPUs of this machine that measure (ChooseLocalDevices).
  std::string gpus = "all";
  // Folder of the authority of the farm's keys, an absolute path; "": the farm has a secret.
  std::string authority = {};

  friend bool operator==(const FarmOptions&, const FarmOptions&) = default;
};

struct FarmProcess {
  enum class Phase { kStarting, kServing, kWaiting, kGivenUp };

  // "tracker", "runner cpu", "runner cuda:1".
  std::string name;
  // The device of a runner: "NVIDIA H200 (GPU-1f0c...)"; "": the process is no runner.
  std::string device = {};
  // Cores on which it runs, "0-3,8"; "": any.
  std::string cores = {};
  Phase phase = Phase::kStarting;
  // No process while it waits to be started again, and once it is given up.
  ProcessIdentity process = {};
  // HOST:PORT of each port, for this machine; empty while it starts for the first time.
  std::vector<std::string> addresses = {};
  // HOST:PORT of its pages (/metrics, /healthz), for this machine; "" if it serves none.
  std::string pages = {};
  std::string log;
  int restarts = 0;
  // How it ended the last time: "killed by signal 9 (Killed)"; "" if it never did.
  std::string last_end = {};

  friend bool operator==(const FarmProcess&, const FarmProcess&) = default;
};

struct FarmState {
  FarmOptions options;
  // The machine: a folder may be seen by several.
  std::string machine;
  ProcessIdentity supervisor;
  // Folder of the user's keys; "": the farm has a secret.
  std::string user_keys = {};
  double started_s = 0;
  // True once all processes served at the same time.
  bool up = false;
  std::vector<FarmProcess> processes = {};
  // Sentences for the user: a port that was taken.
  std::vector<std::string> notes = {};

  // Returns the address of the process with this name; "" if there is none.
  std::string AddressOf(std::string_view name) const;

  friend bool operator==(const FarmState&, const FarmState&) = default;
};

// Returns "starting", "serving", "waiting to be started again", "given up".
std::string_view PhaseName(FarmProcess::Phase phase);

std::string FarmStateText(const FarmState& state);
// DataLoss, with what is wrong, if the text is not what FarmStateText returns.
StatusOr<FarmState> ParseFarmState(std::string_view text);

// Replaces the file.
Status WriteFarmState(const std::string& path, const FarmState& state);
// NotFound if there is no file. DataLoss names the file and says what to do.
StatusOr<FarmState> ReadFarmState(const std::string& path);

}  // namespace kiln::client
