#include "rpc/farm_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <string_view>
#include <utility>

#include "base/keys/key_folder.h"
#include "base/server/grpc_status.h"

namespace kiln {
namespace {

namespace tls = grpc::experimental;

// gRPC polls, because it gives a provider of ours no place.
constexpr unsigned kReadEverySeconds = 1;

// Accepts servers that are daemons of the farm.
class DaemonVerifier : public tls::ExternalCertificateVerifier {
 public:
  explicit DaemonVerifier(std::shared_ptr<ServerWatch> servers) : servers_(std::move(servers)) {}
  ~DaemonVerifier() override = default;

  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    *status = ToGrpc(servers_->Accept(View(request->target_name()), View(request->peer_cert())));
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  static std::string_view View(grpc::string_ref text) { return {text.data(), text.size()}; }

  const std::shared_ptr<ServerWatch> servers_;
};

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> FarmCredentials(const LiveKeys& keys,
                                                          std::shared_ptr<ServerWatch> servers) {
  const auto [identity, authority, revoked] = KeyFolderFiles(keys.path());
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
      tls::ExternalCertificateVerifier::Create<DaemonVerifier>(std::move(servers)));
  return tls::TlsCredentials(options);
}

}  // namespace kiln
