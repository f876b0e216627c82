// Tells clients that know only the scheduler which workers its tracker has: passes on the call List
// of the tracker's service. All other calls of that service are refused. A List that another
// scheduler passes on is refused, too, because that scheduler's tracker is named wrongly, and two
// schedulers that name each other would ask forever.
//
// Thread-safe.
#pragma once

#include <utility>

#include "proto/tracker.grpc.pb.h"
#include "rpc/admission_control.h"
#include "scheduler/service/service.h"

namespace kiln::scheduler {

// Key of the metadata of a List that a scheduler sends to its tracker.
inline constexpr char kAskedBySchedulerKey[] = "kiln-asked-by-scheduler";

class WorkersView final : public v1::Tracker::Service {
 public:
  WorkersView(AdmissionControl admission, WorkerList list_workers)
      : admission_(std::move(admission)), list_workers_(std::move(list_workers)) {}

  grpc::Status List(grpc::ServerContext* context, const v1::ListRequest* request,
                    v1::ListReply* reply) override;

 private:
  const AdmissionControl admission_;
  const WorkerList list_workers_;
};

}  // namespace kiln::scheduler
