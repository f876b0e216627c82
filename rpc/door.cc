#include "rpc/door.h"

#include "rpc/field_limits.h"

namespace kiln {

Status Door::AdmitCaller(const grpc::ServerContextBase& context) const {
  if (secret_.empty()) return OkStatus();
  const auto& metadata = context.client_metadata();
  const auto told = metadata.find(kSecretKey);
  if (told == metadata.end()) {
    return MakeStatus(StatusCode::kUnauthenticated,
                      "this {} asks for the secret of its farm: give --secret-file FILE, or set "
                      "KILN_SECRET_FILE, with a copy of the file that it was started with",
                      service_);
  }
  if (secret_.Matches({told->second.data(), told->second.size()})) return OkStatus();
  return MakeStatus(StatusCode::kUnauthenticated,
                    "this {} has another secret than the one of --secret-file or "
                    "KILN_SECRET_FILE: copy the file that it was started with",
                    service_);
}

Status Door::Admit(const grpc::ServerContextBase& context,
                   const google::protobuf::Message& request) const {
  KILN_RETURN_IF_ERROR(AdmitCaller(context));
  return CheckFields(request);
}

}  // namespace kiln
