// Runs trials without a job: sends candidates to the builder and the runner of an embedded cluster,
// one at a time, and returns their results. Nothing is recorded.
//
// The services and RPCs are those of a job's trials. Belongs to one thread; the cluster must
// outlive it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/local_cluster.h"
#include "proto/builder.grpc.pb.h"
#include "proto/job_defaults.h"
#include "proto/runner.grpc.pb.h"
#include "proto/tracker.pb.h"

namespace kiln::client {

struct DirectTrial {
  // Text form.
  std::string dag;
  std::string target;
  std::string steps = "[]";
  v1::Fault fault = v1::FAULT_NONE;
  v1::MeasureOptions options = {};
  uint64_t seed = kDefaultSeed;
  // 0: the builder's default.
  uint32_t build_timeout_ms = 0;
};

class DirectTrials {
 public:
  // Waits until the tracker knows the runner.
  static StatusOr<std::unique_ptr<DirectTrials>> Connect(const LocalCluster& cluster);

  using Samples = std::vector<v1::OutputSample>;

  // State of the runner that measures.
  const v1::WorkerState& runner() const { return runner_; }

  // Returns the artifact, or the build's error in the reply. A failing status means that the
  // infrastructure failed.
  StatusOr<v1::BuildReply> Build(const DirectTrial& trial);
  // Returns the unscheduled program of the trial's workload, with large sums in float64. It is
  // built once. A failing build is a failing status.
  StatusOr<v1::Artifact> Reference(const DirectTrial& trial);
  // Checks `artifact` against `reference` and times it. The reference computes the elements
  // `samples` of the outputs; empty: all elements.
  StatusOr<v1::TrialResult> Measure(const v1::Artifact& artifact, const v1::Artifact& reference,
                                    const DirectTrial& trial, const Samples& samples = {});
  // Builds, checks and times the trial; an error of the build is the trial's result. If the
  // workload's unscheduled loops would take long, only a sample of the outputs is checked.
  StatusOr<v1::TrialResult> Run(const DirectTrial& trial);

 private:
  DirectTrials() = default;
  // Returns the trial that computes a sample of the outputs without a schedule.
  StatusOr<DirectTrial> SampleOf(const DirectTrial& trial, Samples& samples) const;

  std::unique_ptr<v1::Builder::Stub> builder_;
  std::unique_ptr<v1::Runner::Stub> measurer_;
  v1::WorkerState runner_;
  // References by target and DAG.
  std::map<std::string, v1::Artifact> references_;
};

}  // namespace kiln::client
