#include "scheduler/workers_view.h"

#include "base/server/grpc_status.h"

namespace kiln::scheduler {

grpc::Status WorkersView::List(grpc::ServerContext* context, const v1::ListRequest* request,
                               v1::ListReply* reply) {
  if (const Status admitted = admission_.Admit(*context, *request); !admitted.ok())
    return ToGrpc(admitted);
  if (context->client_metadata().contains(kAskedBySchedulerKey)) {
    return ToGrpc(FailedPrecondition(
        "a scheduler answers there: its --tracker should be the address of a tracker"));
  }
  StatusOr<v1::ListReply> workers = list_workers_();
  if (!workers.ok()) return ToGrpc(workers.status());
  *reply = *std::move(workers);
  return grpc::Status::OK;
}

}  // namespace kiln::scheduler
