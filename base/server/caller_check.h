// Checks callers before their requests are read.
//
// gRPC reads the request of a call, however large, before the service hears of the call. The
// metadata are small and come first, so a check of the metadata refuses a stranger without reading
// the request.
#pragma once

#include <grpc/grpc.h>
#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace kiln {

// The metadata at the beginning of a call. Valid while the check runs.
class CallHead {
 public:
  CallHead(const grpc_metadata* metadata, size_t count) : metadata_(metadata), count_(count) {}

  // Returns for instance "/kiln.v1.Tracker/Announce".
  std::string_view method() const { return Find(":path").value_or(""); }
  std::optional<std::string_view> Find(std::string_view key) const;

 private:
  const grpc_metadata* metadata_;
  size_t count_;
};

// Lets the call in if it returns OK; another status is the call's answer. Threads of gRPC call the
// check, many at once, so it must not wait.
using CallerCheck = std::function<Status(const CallHead&)>;

// Returns plain-text credentials for one server, which check each call.
std::shared_ptr<grpc::ServerCredentials> CheckedCredentials(CallerCheck check);

}  // namespace kiln
