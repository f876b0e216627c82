#include "rpc/farm_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <string_view>
#include <utility>

#include "base/keys/key_folder.h"
#include "base/server/grpc_status.h"
#include "rpc/member_check.h"

namespace kiln {
namespace {

namespace tls = grpc::experimental;

// gRPC polls, because it gives a provider of ours no place.
constexpr unsigned kReadEverySeconds = 1;

// Accepts servers that are daemons of the farm.
class DaemonVerifier : public tls::ExternalCertificateVerifier {
 public:
  DaemonVerifier(std::shared_ptr<LiveKeys> keys, Clock& clock) : members_(std::move(keys), clock) {}
  ~DaemonVerifier() override = default;

  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    const grpc::string_ref shown = request->peer_cert();
    *status = ToGrpc(Check(std::string_view(shown.data(), shown.size())));
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  Status Check(std::string_view pem) {
    KILN_ASSIGN_OR_RETURN(const Identity server, members_.Check(pem));
    if (MayServe(server.role)) return OkStatus();
    return MakeStatus(StatusCode::kUnauthenticated,
                      "the server has the certificate of {} with the role {}, expected a daemon's: "
                      "`kiln keys issue NAME --role work`",
                      server.name, RoleName(server.role));
  }

  MemberCheck members_;
};

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> FarmCredentials(std::shared_ptr<LiveKeys> keys,
                                                          Clock& clock) {
  const auto [identity, authority, revoked] = KeyFolderFiles(keys->path());
  tls::TlsChannelCredentialsOptions options;
  // Key and certificate are one file.
  options.set_certificate_provider(std::make_shared<tls::FileWatcherCertificateProvider>(
      identity, identity, authority, kReadEverySeconds));
  options.watch_identity_key_cert_pairs();
  options.watch_root_certs();
  // The verifier checks all of it, and can say what is wrong. OpenSSL's own check would say no more
  // than that it failed.
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<DaemonVerifier>(std::move(keys), clock));
  return tls::TlsCredentials(options);
}

}  // namespace kiln
