// The Builder gRPC service: a BuildExecutor behind the wire contract. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "base/keys/live_keys.h"
#include "builder/build_executor.h"
#include "builder/builder_metrics.h"
#include "proto/builder.grpc.pb.h"
#include "rpc/admission_control.h"
#include "rpc/worker_modes.h"

namespace kiln::builder {

class BuilderService : public v1::Builder::Service {
 public:
  // `executor` and `modes` outlive the service. While the modes refuse work, calls are sent back
  // (rpc/yield_reply.h); a pause stops the builds in hand. Artifacts of requests that name a trial
  // are signed with `keys` (rpc/artifact_signature.h), those from a cache too; null: nothing is
  // signed. `metrics` count what was answered.
  BuilderService(BuildExecutor& executor, const WorkerModes& modes, bool allow_faults,
                 AdmissionControl admission = {}, std::shared_ptr<LiveKeys> keys = nullptr,
                 BuilderMetrics metrics = {})
      : executor_(executor),
        modes_(modes),
        allow_faults_(allow_faults),
        admission_(std::move(admission)),
        keys_(std::move(keys)),
        metrics_(metrics) {}

  // Makes calls that wait or build end with Cancelled from now on. Called before the server's
  // Shutdown.
  void Stop() { stopping_ = true; }

  // Returns the number of requests answered with a reply.
  uint64_t builds_done() const { return builds_done_; }

  grpc::Status Build(grpc::ServerContext* context, const v1::BuildRequest* request,
                     v1::BuildReply* reply) override;

 private:
  Status Sign(const v1::BuildRequest& request, v1::BuildReply& reply) const;

  BuildExecutor& executor_;
  const WorkerModes& modes_;
  const bool allow_faults_;
  const AdmissionControl admission_;
  const std::shared_ptr<LiveKeys> keys_;
  const BuilderMetrics metrics_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> builds_done_{0};
};

}  // namespace kiln::builder
