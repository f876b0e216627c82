// The answer of a worker that takes no trials now. Its sentence is for people; the metadata behind
// it tells the scheduler that neither the trial nor the worker has failed.
//
// Thread-safe.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>

#include "base/status.h"
#include "rpc/worker_modes.h"

namespace kiln {

// Makes the answer, UNAVAILABLE, and adds the metadata to the call.
grpc::Status YieldReply(grpc::ServerContext& context, const EffectiveMode& mode);

// Marks `status`, the status of the ended call, if its answer was such an answer.
void MarkYield(const grpc::ClientContext& context, Status& status);
// Returns whether the status is marked.
bool IsYield(const Status& status);

}  // namespace kiln
