// Admission control: checks every call before a service does anything for it.
//
// It asks for the secret of the farm, if there is one, and refuses messages with fields beyond
// their limits. The server asks for the secret with MakeCallerCheck before it reads a request; the
// service asks once more with Admit. Thread-safe; copies are cheap.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/server/caller_check.h"
#include "base/server/secret.h"
#include "base/status.h"

namespace kiln {

// The key under which a call carries the secret.
inline constexpr char kSecretKey[] = "kiln-secret";

class AdmissionControl {
 public:
  // Admits callers without a secret.
  AdmissionControl() = default;
  // Messages name the service by `service`: "tracker".
  AdmissionControl(std::string service, Secret secret)
      : service_(std::move(service)), secret_(std::move(secret)) {}

  // Checks a call with one request. Unauthenticated, with a message that says what to do, or the
  // InvalidArgument of CheckFields.
  Status Admit(const grpc::ServerContextBase& context,
               const google::protobuf::Message& request) const;
  // Checks the caller of a call that streams requests; each request is then checked by itself.
  Status AdmitStream(const grpc::ServerContextBase& context) const;

  // Returns the check that the server makes (base/server/grpc_server.h); null if no secret is asked
  // for.
  CallerCheck MakeCallerCheck() const;

 private:
  Status CheckSecret(std::optional<std::string_view> told) const;

  std::string service_ = "service";
  Secret secret_;
};

}  // namespace kiln
