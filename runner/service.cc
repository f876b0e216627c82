#include "runner/service.h"

#include "base/log.h"
#include "base/log_scope.h"
#include "base/server/grpc_status.h"
#include "rpc/trace_context.h"
#include "rpc/yield_reply.h"

namespace kiln::runner {

grpc::Status RunnerService::Measure(grpc::ServerContext* context, const v1::MeasureRequest* request,
                                    v1::MeasureReply* reply) {
  if (const Status admitted = admission_.Admit(*context, *request); !admitted.ok()) {
    return ToGrpc(admitted);
  }
  EffectiveMode mode = modes_.Effective();
  if (RefusesTrials(mode.mode)) return YieldReply(*context, mode);
  const LogScope log_ids(LogIdsOf(request->trial(), request->traceparent()));
  bool is_stopped = false;
  auto measured = slot_.Measure(*request, [&] {
    if (is_stopped) return true;
    mode = modes_.Effective();
    is_stopped = StopsTrials(mode.mode);
    return is_stopped || stopping_ || context->IsCancelled();
  });
  if (!measured.ok() && is_stopped) {
    LogInfo("measure stopped: {}", mode.sentence);
    return YieldReply(*context, mode);
  }
  if (!measured.ok()) {
    LogInfo("measure refused: {}", Message(measured.status()));
    if (measured.status().code() == StatusCode::kUnavailable && on_fault_ != nullptr) on_fault_();
    return ToGrpc(measured.status());
  }
  *reply = *std::move(measured);
  v1::TrialResult& result = *reply->mutable_result();
  result.set_runner(worker_id_);
  metrics_.Note(*reply);
  LogDebug("measured {}: {} {}", request->artifact().digest().substr(0, 12),
           v1::ErrorKind_Name(result.error()),
           result.costs_s().empty() ? result.message() : fmt::format("{} s", result.costs_s(0)));
  return grpc::Status::OK;
}

}  // namespace kiln::runner
