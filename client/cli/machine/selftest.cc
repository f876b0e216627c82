// kiln selftest tries the device of this machine.
#include "client/check/selftest.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "base/server/grpc_server.h"
#include "client/cli/machine/commands.h"
#include "client/cli/session_flags.h"
#include "proto/job_defaults.h"

namespace kiln::client {
namespace {

StatusOr<int> Test(const SelfTestFlags& flags, const Session& session) {
  InitGrpc();
  return SelfTest(flags, session.json);
}

}  // namespace

Run AddSelfTest(CLI::App& selftest, SessionFlags& session) {
  const auto flags = std::make_shared<SelfTestFlags>();
  selftest.description(
      "try the device of this machine: programs of every kind, faults, a job with faults");
  selftest.add_option("--device", flags->device, "cuda, cuda:0, cuda:GPU-... or cpu")
      ->capture_default_str();
  selftest.add_option("--trials", flags->trials, "of the job with faults")
      ->check(CLI::Range(24u, kMaxTrials))
      ->capture_default_str();
  selftest.add_option("--seed", flags->seed, "of everything random")
      ->check(NotNegative())
      ->capture_default_str();
  selftest.add_option("--slack", flags->slack_s, "seconds that the trial after a fault may take")
      ->capture_default_str();
  selftest.add_option("--log-dir", flags->log_folder,
                      "keep the logs of the processes started here");
  session.AddJson(selftest);
  return [flags](const Session& session) { return Test(*flags, session); };
}

}  // namespace kiln::client
