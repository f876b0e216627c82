// The Builder gRPC service: a BuildExecutor behind the wire contract. Thread-safe.
#pragma once

#include <atomic>
#include <utility>

#include "builder/build_executor.h"
#include "proto/builder.grpc.pb.h"
#include "rpc/admission_control.h"

namespace kiln::builder {

class BuilderService : public v1::Builder::Service {
 public:
  // `executor` outlives the service.
  BuilderService(BuildExecutor& executor, bool allow_faults, AdmissionControl admission = {})
      : executor_(executor), allow_faults_(allow_faults), admission_(std::move(admission)) {}

  // Makes calls that wait or build end with Cancelled from now on. Called before the server's
  // Shutdown.
  void Stop() { stopping_ = true; }

  // Returns the number of requests answered with a reply.
  uint64_t builds_done() const { return builds_done_; }

  grpc::Status Build(grpc::ServerContext* context, const v1::BuildRequest* request,
                     v1::BuildReply* reply) override;

 private:
  BuildExecutor& executor_;
  const bool allow_faults_;
  const AdmissionControl admission_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> builds_done_{0};
};

}  // namespace kiln::builder
