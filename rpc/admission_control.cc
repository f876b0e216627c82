#include "rpc/admission_control.h"

#include "rpc/field_limits.h"

namespace kiln {

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

Status AdmissionControl::AdmitStream(const grpc::ServerContextBase& context) const {
  const auto& metadata = context.client_metadata();
  const auto told = metadata.find(kSecretKey);
  if (told == metadata.end()) return CheckSecret(std::nullopt);
  return CheckSecret(std::string_view(told->second.data(), told->second.size()));
}

CallerCheck AdmissionControl::MakeCallerCheck() const {
  if (secret_.empty()) return nullptr;
  return [admission = *this](const CallHead& head) {
    return admission.CheckSecret(head.Find(kSecretKey));
  };
}

Status AdmissionControl::Admit(const grpc::ServerContextBase& context,
                               const google::protobuf::Message& request) const {
  KILN_RETURN_IF_ERROR(AdmitStream(context));
  return CheckFields(request);
}

}  // namespace kiln
