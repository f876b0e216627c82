#include "scheduler/service/told_status.h"

#include <string>

#include "scheduler/values/request_trace.h"

namespace kiln::scheduler {

StatusOr<v1::JobStatus> ToldStatus(const Jobs& jobs, const store::JobRow& job) {
  KILN_ASSIGN_OR_RETURN(v1::JobStatus status, jobs.StatusOf(job));
  if (const std::string& kept = status.spec().request_id(); !kept.empty()) {
    status.mutable_spec()->set_request_id(std::string(RequestIdIn(kept)));
  }
  return status;
}

}  // namespace kiln::scheduler
