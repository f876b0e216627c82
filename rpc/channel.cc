#include "rpc/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_interceptor.h>

#include <utility>
#include <vector>

#include "rpc/admission_control.h"

namespace kiln {
namespace {

namespace hooks = grpc::experimental;

constexpr int kFirstReconnectMs = 100;
constexpr int kSlowestReconnectMs = 500;
// Time for connecting and the handshake. A busy machine may need a while, and a connection that is
// given up half way is an error for every call that waits for it.
constexpr int kConnectMs = 5'000;
constexpr int kPingMs = 20'000;
constexpr int kPingTimeoutMs = 10'000;
constexpr int kMaxMessageBytes = 256 << 20;

// Puts the secret into the metadata of a call.
class SecretSender : public hooks::Interceptor {
 public:
  explicit SecretSender(const Secret& secret) : secret_(secret) {}

  void Intercept(hooks::InterceptorBatchMethods* methods) override {
    using hooks::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace(kSecretKey, secret_.text());
    }
    methods->Proceed();
  }

 private:
  const Secret secret_;
};

class SecretSenderFactory : public hooks::ClientInterceptorFactoryInterface {
 public:
  explicit SecretSenderFactory(Secret secret) : secret_(std::move(secret)) {}

  hooks::Interceptor* CreateClientInterceptor(hooks::ClientRpcInfo*) override {
    // gRPC owns the sender.
    return new SecretSender(secret_);
  }

 private:
  const Secret secret_;
};

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  // Despite its name this option sets how long one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kSlowestReconnectMs);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  return arguments;
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const FarmAccess& access) {
  const auto credentials = access.CredentialsFor(address);
  if (access.secret().empty()) return grpc::CreateCustomChannel(address, credentials, Arguments());
  std::vector<std::unique_ptr<hooks::ClientInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<SecretSenderFactory>(access.secret()));
  return hooks::CreateCustomChannelWithInterceptors(address, credentials, Arguments(),
                                                    std::move(interceptors));
}

std::shared_ptr<grpc::Channel> MakeStrangersChannel(const std::string& address) {
  hooks::TlsChannelCredentialsOptions options;
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(std::make_shared<hooks::NoOpCertificateVerifier>());
  return grpc::CreateCustomChannel(address, hooks::TlsCredentials(options), Arguments());
}

}  // namespace kiln
