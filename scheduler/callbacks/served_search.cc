#include "scheduler/callbacks/served_search.h"

#include <utility>

#include "scheduler/callbacks/served_model.h"
#include "scheduler/callbacks/served_objective.h"
#include "scheduler/callbacks/served_rules.h"

namespace kiln::scheduler {

StatusOr<std::unique_ptr<ServedSearch>> ServedSearch::Begin(CallbackHub& hub, Options options) {
  KILN_ASSIGN_OR_RETURN(auto caller, hub.Open(options.job_id));
  return std::unique_ptr<ServedSearch>(new ServedSearch(std::move(caller), std::move(options)));
}

std::shared_ptr<costmodel::CostModel> ServedSearch::Model(
    int task, std::shared_ptr<const costmodel::CostModel> analytic) {
  if (!has_model()) return nullptr;
  return std::make_shared<ServedModel>(*this, task, std::move(analytic));
}

std::unique_ptr<search::BatchedRules> ServedSearch::Rules(int task) {
  if (served().sketch_rules().empty()) return nullptr;
  return std::make_unique<ServedRules>(*this, task);
}

search::Objective ServedSearch::Objective(double target_s) {
  return MakeServedObjective(*this, target_s);
}

StatusOr<v1::CallbackReply> ServedSearch::Build(v1::BuildCall call, absl::Duration timeout,
                                                const std::stop_token& stop) {
  KILN_RETURN_IF_ERROR(failure());
  v1::CallbackRequest request;
  *request.mutable_build() = std::move(call);
  auto reply = caller_->CallBeside(std::move(request), timeout, stop);
  const StatusCode code = reply.status().code();
  if (reply.ok() || code == StatusCode::kCancelled || code == StatusCode::kDeadlineExceeded)
    return reply;
  if (code == StatusCode::kUnavailable) return Fail(reply.status());
  return Fail(Annotate(reply.status(), "the build function"));
}

Status ServedSearch::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

Status ServedSearch::Fail(Status why) {
  {
    std::lock_guard lock(mutex_);
    if (!failure_.ok()) return failure_;
    failure_ = why;
  }
  options_.failed();
  return why;
}

StatusOr<v1::CallbackReply> ServedSearch::Call(v1::CallbackRequest request,
                                               const std::string& what) {
  KILN_RETURN_IF_ERROR(failure());
  StatusOr<v1::CallbackReply> reply =
      caller_->Call(std::move(request), absl::Seconds(served().timeout_s()), options_.stop);
  if (!reply.ok()) {
    if (reply.status().code() == StatusCode::kCancelled) return reply.status();
    if (reply.status().code() == StatusCode::kUnavailable) return Fail(reply.status());
    return Fail(Annotate(reply.status(), what));
  }
  if (!reply->error().empty()) {
    return Fail(FailedPrecondition("{} of the user raised an error: {}", what, reply->error()));
  }
  return reply;
}

}  // namespace kiln::scheduler
