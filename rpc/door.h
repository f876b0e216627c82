// The door of a service checks every call before the service does anything for it.
//
// A door asks for the secret of the farm, if there is one, and refuses messages with fields beyond
// their limits. The server asks for the secret with CheckOfCallers before it reads a request; the
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

class Door {
 public:
  // Makes a door that asks for no secret.
  Door() = default;
  // Messages name the service by `service`: "tracker".
  Door(std::string service, Secret secret)
      : service_(std::move(service)), secret_(std::move(secret)) {}

  // Checks a call with one request. Unauthenticated, with a message that says what to do, or the
  // InvalidArgument of CheckFields.
  Status Admit(const grpc::ServerContextBase& context,
               const google::protobuf::Message& request) const;
  // Checks the caller of a call that streams requests; each request is then checked by itself.
  Status AdmitCaller(const grpc::ServerContextBase& context) const;

  // Returns the check that the server makes (base/server/grpc_server.h); null if no secret is asked
  // for.
  CallerCheck CheckOfCallers() const;

 private:
  Status CheckSecret(std::optional<std::string_view> told) const;

  std::string service_ = "service";
  Secret secret_;
};

}  // namespace kiln
