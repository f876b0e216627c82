#include "builder/service.h"

#include <utility>

#include "base/log.h"
#include "base/log_scope.h"
#include "base/server/grpc_status.h"
#include "rpc/artifact_signature.h"
#include "rpc/trace_context.h"
#include "rpc/yield_reply.h"

namespace kiln::builder {

grpc::Status BuilderService::Build(grpc::ServerContext* context, const v1::BuildRequest* request,
                                   v1::BuildReply* reply) {
  if (const Status admitted = admission_.Admit(*context, *request); !admitted.ok()) {
    return ToGrpc(admitted);
  }
  if (request->fault() != v1::FAULT_NONE && !allow_faults_) {
    return ToGrpc(
        FailedPrecondition("this builder makes no broken code; start it with --allow-faults"));
  }
  EffectiveMode mode = modes_.Effective();
  if (RefusesTrials(mode.mode)) return YieldReply(*context, mode);
  const LogScope log_ids(LogIdsOf(request->trial(), request->traceparent()));
  bool is_stopped = false;
  auto outcome = executor_.Build(*request, [&] {
    if (is_stopped) return true;
    mode = modes_.Effective();
    is_stopped = StopsTrials(mode.mode);
    return is_stopped || stopping_ || context->IsCancelled();
  });
  if (!outcome.ok() && is_stopped) {
    LogInfo("build stopped: {}", mode.sentence);
    return YieldReply(*context, mode);
  }
  if (!outcome.ok()) {
    LogInfo("build refused: {}", Message(outcome.status()));
    return ToGrpc(outcome.status());
  }
  *reply = std::move(outcome->reply);
  if (const Status is_signed = Sign(*request, *reply); !is_signed.ok()) return ToGrpc(is_signed);
  ++builds_done_;
  metrics_.Note(*reply);
  LogDebug("built {} in {:.3f} s{}: {} {}", reply->artifact().digest().substr(0, 12),
           reply->build_s(), reply->cached() ? ", cached" : "", v1::ErrorKind_Name(reply->error()),
           reply->message());
  return grpc::Status::OK;
}

Status BuilderService::Sign(const v1::BuildRequest& request, v1::BuildReply& reply) const {
  if (keys_ == nullptr || request.trial().empty() || reply.artifact().binary().empty()) {
    return OkStatus();
  }
  return SignArtifact(*keys_->Now(), request.target(), request.trial(), *reply.mutable_artifact());
}

}  // namespace kiln::builder
