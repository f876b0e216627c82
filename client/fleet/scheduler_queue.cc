#include "client/fleet/scheduler_queue.h"

#include <utility>

#include "base/process/user_name.h"
#include "client/service_call.h"
#include "rpc/asked_by.h"

namespace kiln::client {

StatusOr<v1::ListReply> SchedulerQueue::List() {
  KILN_ASSIGN_OR_RETURN(const FarmAccess access, session_.Access());
  auto workers = ListWorkers(session_.scheduler, access);
  // The list is a call of trackers, which schedulers answer, too; its errors speak of a tracker.
  if (!workers.ok()) KILN_RETURN_IF_ERROR(session_.Connect().status());
  return workers;
}

Status SchedulerQueue::SetMode(const std::string& worker_id, v1::WorkerMode mode,
                               const std::string& why) {
  if (client_ == nullptr) {
    KILN_ASSIGN_OR_RETURN(client_, session_.Connect());
  }
  v1::SetWorkerModeRequest request;
  request.set_worker(worker_id);
  request.set_mode(mode);
  request.set_user(PrintAskedBy({.name = UserName(), .why = why}));
  return Call(*client_->stub(), &v1::Scheduler::Stub::SetWorkerMode, request).status();
}

}  // namespace kiln::client
