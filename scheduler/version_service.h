// Tells clients the version of the scheduler and of its calls. Thread-safe.
#pragma once

#include <utility>

#include "proto/version.grpc.pb.h"
#include "rpc/admission_control.h"

namespace kiln::scheduler {

class VersionService final : public v1::Versions::Service {
 public:
  explicit VersionService(AdmissionControl admission) : admission_(std::move(admission)) {}

  grpc::Status Get(grpc::ServerContext* context, const v1::VersionRequest* request,
                   v1::VersionReply* reply) override;

 private:
  const AdmissionControl admission_;
};

}  // namespace kiln::scheduler
