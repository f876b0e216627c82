#include "rpc/admission_control.h"

#include <grpc/grpc_security_constants.h>

#include "base/text/utf8.h"
#include "rpc/field_limits.h"
#include "rpc/roles.h"

namespace kiln {
namespace {

constexpr size_t kShownBytes = 80;

}  // namespace

Status AdmissionControl::CheckSecret(std::optional<std::string_view> told) const {
  if (secret_.empty()) return OkStatus();
  if (!told.has_value()) {
    return MakeStatus(StatusCode::kUnauthenticated,
                      "this {} asks for the secret of its farm: give --secret-file FILE, or set "
                      "KILN_SECRET_FILE, with a copy of the file that it was started with",
                      service_);
  }
  if (secret_.Matches(*told)) return OkStatus();
  return MakeStatus(StatusCode::kUnauthenticated,
                    "this {} has another secret than the one of --secret-file or "
                    "KILN_SECRET_FILE: copy the file that it was started with",
                    service_);
}

StatusOr<Identity> AdmissionControl::CheckMember(
    std::optional<std::string_view> certificate) const {
  if (certificate.has_value()) return members_->Check(*certificate);
  return MakeStatus(StatusCode::kUnauthenticated,
                    "this {} asks for a certificate of its farm, and none was shown: `kiln keys "
                    "issue NAME --role ROLE` where the farm's authority is makes one",
                    service_);
}

Status AdmissionControl::CheckHead(const CallHead& head) const {
  if (members_ == nullptr) return CheckSecret(head.Find(kSecretKey));
  KILN_ASSIGN_OR_RETURN(const Identity caller, CheckMember(head.certificate()));
  return CheckRole(caller, head.method());
}

Status AdmissionControl::AdmitStream(const grpc::ServerContextBase& context) const {
  if (members_ != nullptr) return Caller(context).status();
  const auto& metadata = context.client_metadata();
  const auto told = metadata.find(kSecretKey);
  if (told == metadata.end()) return CheckSecret(std::nullopt);
  return CheckSecret(std::string_view(told->second.data(), told->second.size()));
}

StatusOr<std::optional<Identity>> AdmissionControl::Caller(
    const grpc::ServerContextBase& context) const {
  if (members_ == nullptr) return std::nullopt;
  const auto shown = context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (shown.empty()) return CheckMember(std::nullopt).status();
  return CheckMember(std::string_view(shown[0].data(), shown[0].size()));
}

StatusOr<std::string> AdmissionControl::CallerName(const grpc::ServerContextBase& context,
                                                   std::string_view told) const {
  KILN_ASSIGN_OR_RETURN(const std::optional<Identity> caller, Caller(context));
  if (!caller.has_value()) return std::string(told);
  if (told.empty() || told == caller->name) return caller->name;
  return MakeStatus(StatusCode::kPermissionDenied,
                    "the request is in the name of '{}', and its caller's certificate is that of "
                    "{}; leave the name out, or call with the keys of '{}'",
                    OneLine(told.substr(0, kShownBytes)), caller->name,
                    OneLine(told.substr(0, kShownBytes)));
}

Status AdmissionControl::AdmitFor(const grpc::ServerContextBase& context, std::string_view owner,
                                  std::string_view method, std::string_view thing) const {
  KILN_ASSIGN_OR_RETURN(const std::optional<Identity> caller, Caller(context));
  return caller.has_value() ? CheckOwner(*caller, owner, method, thing) : OkStatus();
}

CallerCheck AdmissionControl::MakeCallerCheck() const {
  if (members_ == nullptr && secret_.empty()) return nullptr;
  return [admission = *this](const CallHead& head) { return admission.CheckHead(head); };
}

CertificateCheck AdmissionControl::MakeCertificateCheck() const {
  if (members_ == nullptr) return nullptr;
  return [members = members_](std::string_view pem) { return members->Check(pem).status(); };
}

Status AdmissionControl::Admit(const grpc::ServerContextBase& context,
                               const google::protobuf::Message& request) const {
  KILN_RETURN_IF_ERROR(AdmitStream(context));
  return CheckFields(request);
}

}  // namespace kiln
