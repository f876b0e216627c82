// Admission control: checks every call before a service does anything for it.
//
// It asks for the secret of the farm, or for a certificate of the farm with the role that the call
// asks for (rpc/roles.h), and refuses messages with fields beyond their limits. The server asks
// with MakeCallerCheck before it reads a request; the service asks once more with Admit.
// Thread-safe; copies are cheap.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/server/caller_check.h"
#include "base/server/secret.h"
#include "base/status.h"
#include "rpc/member_check.h"

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
  // Admits members of the farm, each to the calls of his role.
  AdmissionControl(std::string service, std::shared_ptr<MemberCheck> members)
      : service_(std::move(service)), members_(std::move(members)) {}

  // Checks a call with one request. Unauthenticated, with a message that says what to do, or the
  // InvalidArgument of CheckFields. The role was checked by MakeCallerCheck's check.
  Status Admit(const grpc::ServerContextBase& context,
               const google::protobuf::Message& request) const;
  // Checks the caller of a call that streams requests; each request is then checked by itself.
  Status AdmitStream(const grpc::ServerContextBase& context) const;

  // Returns whether members have certificates.
  bool has_members() const { return members_ != nullptr; }
  // Returns who calls; none where there are no certificates: everybody who was admitted may then do
  // everything, in any name. Unauthenticated as Admit, which is asked first.
  StatusOr<std::optional<Identity>> Caller(const grpc::ServerContextBase& context) const;
  // Returns the name in which the caller acts: that of his certificate. `told` is the name that his
  // request has: PermissionDenied if it is neither empty nor his own. Where there are no
  // certificates, it is believed.
  StatusOr<std::string> CallerName(const grpc::ServerContextBase& context,
                                   std::string_view told) const;
  // OK if the caller may do to `thing`, which belongs to `owner`, what the call `method` does
  // (CheckOwner of rpc/roles.h). Where there are no certificates, everybody may.
  Status AdmitFor(const grpc::ServerContextBase& context, std::string_view owner,
                  std::string_view method, std::string_view thing) const;

  // Returns the check that the server makes (base/server/grpc_server.h); null if everybody is
  // admitted. PermissionDenied for a member whose role is another.
  CallerCheck MakeCallerCheck() const;
  // Returns the check of certificates whose connections are open; null if there are none.
  CertificateCheck MakeCertificateCheck() const;

 private:
  Status CheckSecret(std::optional<std::string_view> told) const;
  StatusOr<Identity> CheckMember(std::optional<std::string_view> certificate) const;
  Status CheckHead(const CallHead& head) const;

  std::string service_ = "service";
  Secret secret_;
  // Null: the secret decides.
  std::shared_ptr<MemberCheck> members_;
};

}  // namespace kiln
