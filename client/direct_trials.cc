#include "client/direct_trials.h"

#include <grpcpp/client_context.h>

#include <chrono>
#include <optional>

#include "absl/time/clock.h"
#include "base/server/grpc_status.h"
#include "client/client.h"
#include "compiler/dag/sample_outputs.h"
#include "compiler/dag/text.h"
#include "compiler/dag/wide_sums.h"
#include "compiler/target/target.h"
#include "rpc/channel.h"
#include "scheduler/values/answer_tolerance.h"

namespace kiln::client {
namespace {

// Longer than all limits of the services themselves.
constexpr auto kCallTimeout = std::chrono::minutes(10);
constexpr absl::Duration kAnnounceTimeout = absl::Seconds(20);
constexpr absl::Duration kPollPause = absl::Milliseconds(20);
constexpr double kLongReference_s = 10;

template <typename Reply, typename Stub, typename Request>
StatusOr<Reply> Call(Stub& stub,
                     grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                     const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallTimeout);
  context.set_wait_for_ready(true);
  Reply reply;
  const grpc::Status status = (stub.*method)(&context, request, &reply);
  if (!status.ok()) return FromGrpc(status);
  return reply;
}

StatusOr<v1::WorkerState> FindRunner(const LocalCluster& cluster) {
  const absl::Time deadline = absl::Now() + kAnnounceTimeout;
  while (absl::Now() < deadline) {
    KILN_ASSIGN_OR_RETURN(const v1::ListReply reply,
                          ListWorkers(cluster.tracker_address(), cluster.secret()));
    for (const v1::WorkerState& worker : reply.workers()) {
      if (worker.kind() == v1::RUNNER && worker.address() == cluster.runner_address())
        return worker;
    }
    absl::SleepFor(kPollPause);
  }
  return DeadlineExceeded("the runner did not announce itself within {} s",
                          absl::ToInt64Seconds(kAnnounceTimeout));
}

}  // namespace

StatusOr<std::unique_ptr<DirectTrials>> DirectTrials::Connect(const LocalCluster& cluster) {
  std::unique_ptr<DirectTrials> trials(new DirectTrials());
  KILN_ASSIGN_OR_RETURN(trials->runner_, FindRunner(cluster));
  trials->builder_ = v1::Builder::NewStub(MakeChannel(cluster.builder_address(), cluster.secret()));
  trials->measurer_ = v1::Runner::NewStub(MakeChannel(cluster.runner_address(), cluster.secret()));
  return trials;
}

StatusOr<v1::BuildReply> DirectTrials::Build(const DirectTrial& trial) {
  v1::BuildRequest request;
  request.set_dag(trial.dag);
  request.set_target(trial.target);
  request.set_steps(trial.steps);
  *request.mutable_hardware() = runner_.hardware();
  request.set_fault(trial.fault);
  request.set_timeout_ms(trial.build_timeout_ms);
  return Call(*builder_, &v1::Builder::Stub::Build, request);
}

StatusOr<v1::Artifact> DirectTrials::Reference(const DirectTrial& trial) {
  const std::string key = trial.target + "\n" + trial.dag;
  const auto known = references_.find(key);
  if (known != references_.end()) return known->second;
  DirectTrial unscheduled = trial;
  unscheduled.steps = "[]";
  unscheduled.dag = dag::ReferenceText(trial.dag);
  unscheduled.fault = v1::FAULT_NONE;
  KILN_ASSIGN_OR_RETURN(v1::BuildReply reply, Build(unscheduled));
  if (reply.error() != v1::NO_ERROR) {
    return FailedPrecondition("the unscheduled program does not build: {}", reply.message());
  }
  return references_[key] = std::move(*reply.mutable_artifact());
}

StatusOr<DirectTrial> DirectTrials::SampleOf(const DirectTrial& trial, Samples& samples) const {
  KILN_ASSIGN_OR_RETURN(const dag::DagText whole, dag::ParseDagText(trial.dag));
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(trial.target));
  DirectTrial some = trial;
  if (dag::PlainSeconds(*whole.dag, target.kind->unscheduled_flops_per_s) <= kLongReference_s)
    return some;
  const auto sampled = dag::SampleOutputs(whole, {.seed = trial.seed});
  // The outputs cannot be sampled: the whole reference is awaited.
  if (!sampled.ok()) return some;
  some.dag = dag::PrintDag(*sampled->text.dag, sampled->text.ranges);
  for (const dag::OutputGrid& grid : sampled->grids) {
    v1::OutputSample& sample = samples.emplace_back();
    sample.set_output(static_cast<uint32_t>(grid.output));
    sample.mutable_offset()->Add(grid.offset.begin(), grid.offset.end());
    sample.mutable_stride()->Add(grid.stride.begin(), grid.stride.end());
  }
  return some;
}

StatusOr<v1::TrialResult> DirectTrials::Measure(const v1::Artifact& artifact,
                                                const v1::Artifact& reference,
                                                const DirectTrial& trial, const Samples& samples) {
  v1::MeasureRequest request;
  request.mutable_samples()->Add(samples.begin(), samples.end());
  *request.mutable_artifact() = artifact;
  request.set_reference_digest(reference.digest());
  request.set_seed(trial.seed);
  *request.mutable_tolerance() = scheduler::AnswerTolerance({}, trial.dag, trial.target);
  *request.mutable_options() = trial.options;
  auto reply = Call(*measurer_, &v1::Runner::Stub::Measure, request);
  if (reply.status().code() == StatusCode::kFailedPrecondition) {
    *request.mutable_reference() = reference;
    reply = Call(*measurer_, &v1::Runner::Stub::Measure, request);
  }
  KILN_RETURN_IF_ERROR(reply.status());
  return std::move(*reply->mutable_result());
}

StatusOr<v1::TrialResult> DirectTrials::Run(const DirectTrial& trial) {
  KILN_ASSIGN_OR_RETURN(const v1::BuildReply build, Build(trial));
  v1::TrialResult result;
  if (build.error() != v1::NO_ERROR) {
    result.set_error(build.error());
    result.set_message(build.message());
  } else {
    Samples samples;
    KILN_ASSIGN_OR_RETURN(const DirectTrial checked, SampleOf(trial, samples));
    KILN_ASSIGN_OR_RETURN(const v1::Artifact reference, Reference(checked));
    KILN_ASSIGN_OR_RETURN(result, Measure(build.artifact(), reference, trial, samples));
  }
  result.set_build_s(build.build_s());
  result.mutable_times()->MergeFrom(build.times());
  return result;
}

}  // namespace kiln::client
