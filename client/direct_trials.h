// Trials without a job: candidates sent to the builder and the runner of an embedded cluster, one
// at a time, and their results given back. Nothing is recorded.
//
// Same services and RPCs as for a job's trials. Belongs to one thread; the cluster outlives it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/local_cluster.h"
#include "proto/builder.grpc.pb.h"
#include "proto/runner.grpc.pb.h"
#include "proto/tracker.pb.h"

namespace kiln::client {

struct DirectTrial {
  std::string dag;  // text
  std::string target;
  std::string steps = "[]";
  v1::Fault fault = v1::FAULT_NONE;
  v1::MeasureOptions options = {};
  uint64_t seed = 1;
  uint32_t build_timeout_ms = 0;  // 0: the builder's default
};

class DirectTrials {
 public:
  // Waits until the runner is known to the tracker.
  static StatusOr<std::unique_ptr<DirectTrials>> Connect(const LocalCluster& cluster);

  using Samples = std::vector<v1::OutputSample>;

  // Of the measured device.
  const v1::WorkerState& runner() const { return runner_; }

  // The artifact, or the error in the reply. A status is the infrastructure's.
  StatusOr<v1::BuildReply> Build(const DirectTrial& trial);
  // The unscheduled program of the trial's workload, its large sums in float64; built once. Its
  // failure is a status.
  StatusOr<v1::Artifact> Reference(const DirectTrial& trial);
  // Checks `artifact` against `reference` and times it. `samples`: the reference computes these
  // elements of the outputs; empty: all.
  StatusOr<v1::TrialResult> Measure(const v1::Artifact& artifact, const v1::Artifact& reference,
                                    const DirectTrial& trial, const Samples& samples = {});
  // All of it; an error of the build is the trial's. Of a workload whose unscheduled loops would
  // take long a sample of the outputs is checked.
  StatusOr<v1::TrialResult> Run(const DirectTrial& trial);

 private:
  DirectTrials() = default;
  // What computes a sample of the trial's outputs without a schedule.
  StatusOr<DirectTrial> SampleOf(const DirectTrial& trial, Samples& samples) const;

  std::unique_ptr<v1::Builder::Stub> builder_;
  std::unique_ptr<v1::Runner::Stub> measurer_;
  v1::WorkerState runner_;
  std::map<std::string, v1::Artifact> references_;  // by target and DAG
};

}  // namespace kiln::client
