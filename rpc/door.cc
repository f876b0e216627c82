#include "rpc/door.h"

#include "rpc/field_limits.h"

namespace kiln {

Status Door::CheckSecret(std::optional<std::string_view> told) const {
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

Status Door::AdmitCaller(const grpc::ServerContextBase& context) const {
  const auto& metadata = context.client_metadata();
  const auto told = metadata.find(kSecretKey);
  if (told == metadata.end()) return CheckSecret(std::nullopt);
  return CheckSecret(std::string_view(told->second.data(), told->second.size()));
}

CallerCheck Door::CheckOfCallers() const {
  if (secret_.empty()) return nullptr;
  return [door = *this](const CallHead& head) { return door.CheckSecret(head.Find(kSecretKey)); };
}

Status Door::Admit(const grpc::ServerContextBase& context,
                   const google::protobuf::Message& request) const {
  KILN_RETURN_IF_ERROR(AdmitCaller(context));
  return CheckFields(request);
}

}  // namespace kiln
