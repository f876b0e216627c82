// Makes one call of a service.
#pragma once

#include <grpcpp/client_context.h>

#include <chrono>

#include "base/server/grpc_status.h"
#include "base/status.h"

namespace kiln::client {

inline constexpr auto kCallTimeout = std::chrono::seconds(60);

inline void SetTimeout(grpc::ClientContext& context, std::chrono::seconds timeout) {
  context.set_deadline(std::chrono::system_clock::now() + timeout);
}

// Calls a method of a stub.
template <typename Reply, typename Stub, typename Request>
StatusOr<Reply> Call(Stub& stub,
                     grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                     const Request& request, std::chrono::seconds timeout = kCallTimeout) {
  grpc::ClientContext context;
  SetTimeout(context, timeout);
  Reply reply;
  const grpc::Status status = (stub.*method)(&context, request, &reply);
  if (!status.ok()) return FromGrpc(status);
  return reply;
}

}  // namespace kiln::client
