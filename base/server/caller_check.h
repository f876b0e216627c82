// Checks callers before their requests are read.
//
// gRPC reads the request of a call, however large, before the service hears of the call. The
// metadata are small and come first, so a check of the metadata refuses a stranger without reading
// the request.
#pragma once

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/keys/live_keys.h"
#include "base/status.h"

namespace kiln {

// The metadata at the beginning of a call, and who calls. Valid while the check runs.
class CallHead {
 public:
  CallHead(const grpc_metadata* metadata, size_t count, const grpc_auth_context* caller)
      : metadata_(metadata), count_(count), caller_(caller) {}

  // Returns for instance "/kiln.v1.Tracker/Announce".
  std::string_view method() const { return Find(":path").value_or(""); }
  std::optional<std::string_view> Find(std::string_view key) const;
  // Returns the certificate whose key the caller has, as PEM; none if he showed none, or without
  // TLS. Nobody has checked yet who issued it.
  std::optional<std::string_view> certificate() const;

 private:
  const grpc_metadata* metadata_;
  size_t count_;
  const grpc_auth_context* caller_;
};

// Lets the call in if it returns OK; another status is the call's answer. Threads of gRPC call the
// check, many at once, so it must not wait.
using CallerCheck = std::function<Status(const CallHead&)>;

// Returns OK while the holder of the certificate, in PEM, may stay. Called every few seconds for
// each certificate of an open connection.
using CertificateCheck = std::function<Status(std::string_view pem)>;

// Returns credentials for one server, which check each call: of TLS with `keys`, plain text if that
// is null.
//
// With TLS, each connection shows the certificate that the folder has by then. Callers are asked
// for a certificate, and a caller without one, or with a stranger's, reaches the check all the
// same: the check is the one place that decides, and its answer can say what is wrong, which an
// alert of TLS cannot. No request is read before.
std::shared_ptr<grpc::ServerCredentials> CheckedCredentials(CallerCheck check,
                                                            std::shared_ptr<LiveKeys> keys);

}  // namespace kiln
