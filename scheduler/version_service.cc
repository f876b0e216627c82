#include "scheduler/version_service.h"

#include <string>

#include "base/server/grpc_status.h"
#include "base/version.h"

namespace kiln::scheduler {

grpc::Status VersionService::Get(grpc::ServerContext* context, const v1::VersionRequest* request,
                                 v1::VersionReply* reply) {
  if (const Status admitted = admission_.Admit(*context, *request); !admitted.ok())
    return ToGrpc(admitted);
  reply->set_version(std::string(kVersion));
  reply->set_protocol(kProtocol);
  reply->set_now_s(absl::ToDoubleSeconds(clock_.Now() - absl::UnixEpoch()));
  return grpc::Status::OK;
}

}  // namespace kiln::scheduler
