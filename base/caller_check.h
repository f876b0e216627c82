// Callers are looked at before their requests are read.
//
// gRPC reads the request of a call, however large, before the service hears of the call. A check at
// the metadata, which are small and come first, refuses a stranger without that.
#pragma once

#include <grpc/grpc.h>
#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace kiln {

// What a call says at its beginning. Valid while the check runs.
class CallHead {
 public:
  CallHead(const grpc_metadata* metadata, size_t count) : metadata_(metadata), count_(count) {}

  // "/kiln.v1.Tracker/Announce"
  std::string_view method() const { return Find(":path").value_or(""); }
  std::optional<std::string_view> Find(std::string_view key) const;

 private:
  const grpc_metadata* metadata_;
  size_t count_;
};

// OK lets the call in; another status is its answer. Called by threads of gRPC, many at once; it
// must not wait.
using CallerCheck = std::function<Status(const CallHead&)>;

// Plain text, with the check at each call. Of one server.
std::shared_ptr<grpc::ServerCredentials> CheckedCredentials(CallerCheck check);

}  // namespace kiln
