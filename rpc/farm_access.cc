#include "rpc/farm_access.h"

#include <cstdlib>
#include <utility>

#include "base/keys/key_folder.h"
#include "base/keys/verify.h"
#include "base/server/grpc_server.h"
#include "rpc/farm_credentials.h"
#include "rpc/member_check.h"

namespace kiln {
namespace {

std::string Variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

StatusOr<FarmAccess> OpenKeys(const std::string& folder) {
  KILN_ASSIGN_OR_RETURN(auto keys, LiveKeys::Open(folder, Clock::Real()));
  InitGrpc();
  FarmAccess access(std::move(keys));
  KILN_RETURN_IF_ERROR(Annotate(access.Self().status(), folder));
  return access;
}

}  // namespace

FarmAccess::FarmAccess(std::shared_ptr<LiveKeys> keys, Clock& clock)
    : keys_(std::move(keys)),
      clock_(&clock),
      servers_(std::make_shared<ServerWatch>(keys_, clock)),
      credentials_(FarmCredentials(*keys_, servers_)) {}

StatusOr<FarmAccess> FarmAccess::Open(const std::string& keys_folder,
                                      const std::string& secret_file) {
  if (!keys_folder.empty() && !secret_file.empty()) {
    return InvalidArgument(
        "found --keys and --secret-file, expected one of them: a farm with keys has no secret");
  }
  if (!keys_folder.empty()) return OpenKeys(keys_folder);
  std::string file = secret_file;
  if (file.empty()) {
    if (const std::string folder = Variable("KILN_KEYS"); !folder.empty()) return OpenKeys(folder);
    file = Variable("KILN_SECRET_FILE");
  }
  if (file.empty()) return FarmAccess();
  KILN_ASSIGN_OR_RETURN(Secret secret, Secret::Read(file));
  return FarmAccess(std::move(secret));
}

StatusOr<Identity> FarmAccess::Self() const {
  KILN_CHECK(keys_ != nullptr, "there are no keys");
  const std::shared_ptr<const KeyFolder> now = keys_->Now();
  return Verify(now->certificate, now->authority, now->revoked, clock_->Now());
}

std::shared_ptr<grpc::ChannelCredentials> FarmAccess::CredentialsFor(
    const std::string& address) const {
  if (credentials_ == nullptr) return grpc::InsecureChannelCredentials();
  servers_->AddAddress(address);
  return credentials_;
}

AdmissionControl FarmAccess::MakeAdmission(std::string service) const {
  if (keys_ == nullptr) return {std::move(service), secret_};
  return {std::move(service), std::make_shared<MemberCheck>(keys_, *clock_)};
}

std::string FarmAccess::SealKey() const {
  return keys_ == nullptr ? secret_.text() : keys_->Now()->key.ToPem();
}

std::string FarmAccess::Revoked() const {
  return keys_ == nullptr ? "" : keys_->Now()->revoked.ToPem();
}

void FarmAccess::TakeRevoked(std::string_view pem) const {
  if (keys_ != nullptr) keys_->TakeRevocations(pem);
}

}  // namespace kiln
