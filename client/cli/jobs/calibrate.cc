// kiln calibrate fits the analytic cost model's constants to a device by a short job.
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "base/process/stop_signal.h"
#include "base/server/grpc_server.h"
#include "client/cli/compilation_target.h"
#include "client/cli/jobs/commands.h"
#include "client/cli/jobs/follow.h"
#include "client/cli/jobs/run_job.h"
#include "client/cli/session_flags.h"
#include "client/jobs/calibration_job.h"
#include "proto/job_defaults.h"

namespace kiln::client {
namespace {

struct CalibrateFlags {
  // Its target may be "": the default.
  Calibration calibration;
  FollowOptions follow;
  ClusterFlags cluster;
};

StatusOr<int> Calibrate(const CalibrateFlags& flags, const Session& session) {
  // StopSignal must exist before any thread.
  StopSignal stop;
  InitGrpc();
  Calibration calibration = flags.calibration;
  KILN_ASSIGN_OR_RETURN(calibration.target, TargetOrDefault(calibration.target, session));
  KILN_ASSIGN_OR_RETURN(v1::JobSpec spec, MakeCalibrationSpec(calibration));
  return RunJob(std::move(spec), flags.cluster, flags.follow, session, stop);
}

}  // namespace

Run AddCalibrate(CLI::App& calibrate, SessionFlags& session) {
  const auto flags = std::make_shared<CalibrateFlags>();
  Calibration& calibration = flags->calibration;
  calibrate.description(
      "measure a device for a minute or two and fit the analytic cost model to it");
  calibrate.add_option("--target", calibration.target,
                       "of the device: cuda or llvm [as for kiln tune]");
  calibrate.add_option("--device", calibration.device,
                       "which of several devices, as for kiln tune [any]");
  calibrate.add_option("--trials", calibration.trials, "candidates to measure and fit to")
      ->check(CLI::Range(90u, kMaxTrials))
      ->capture_default_str();
  calibrate.add_option("--seed", calibration.seed, "of everything random")
      ->check(NotNegative())
      ->capture_default_str();
  session.AddPlace(calibrate);
  AddFollow(calibrate, flags->follow);
  AddCluster(calibrate, flags->cluster);
  return [flags](const Session& session) { return Calibrate(*flags, session); };
}

}  // namespace kiln::client
