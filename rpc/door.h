// The door of a service: every call goes through it before anything is done for it.
//
// It asks for the secret of the farm, where there is one, and refuses messages with fields beyond
// their limits. A server asks for the secret with CheckOfCallers, before it reads a request; the
// service asks once more with Admit. Thread-safe; copies are cheap.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/caller_check.h"
#include "base/secret.h"
#include "base/status.h"

namespace kiln {

// The key under which a call carries the secret.
inline constexpr char kSecretKey[] = "kiln-secret";

class Door {
 public:
  // Asks for no secret.
  Door() = default;
  // `service` for what is said: "tracker".
  Door(std::string service, Secret secret)
      : service_(std::move(service)), secret_(std::move(secret)) {}

  // For a call with one request. Unauthenticated, which says what to do, or InvalidArgument as
  // CheckFields.
  Status Admit(const grpc::ServerContextBase& context,
               const google::protobuf::Message& request) const;
  // For a call that streams requests: the caller at first, then each request.
  Status AdmitCaller(const grpc::ServerContextBase& context) const;

  // For the server (base/grpc_server.h); null where no secret is asked for.
  CallerCheck CheckOfCallers() const;

 private:
  Status CheckSecret(std::optional<std::string_view> told) const;

  std::string service_ = "service";
  Secret secret_;
};

}  // namespace kiln
