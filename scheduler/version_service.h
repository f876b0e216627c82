// Tells clients the version of the scheduler and of its calls. Thread-safe.
#pragma once

#include <utility>

#include "base/clock.h"
#include "proto/version.grpc.pb.h"
#include "rpc/admission_control.h"

namespace kiln::scheduler {

class VersionService final : public v1::Versions::Service {
 public:
  // `clock` outlives the service.
  explicit VersionService(AdmissionControl admission, Clock& clock = Clock::Real())
      : admission_(std::move(admission)), clock_(clock) {}

  grpc::Status Get(grpc::ServerContext* context, const v1::VersionRequest* request,
                   v1::VersionReply* reply) override;

 private:
  const AdmissionControl admission_;
  Clock& clock_;
};

}  // namespace kiln::scheduler
