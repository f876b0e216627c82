#include "rpc/http/http_testing.h"

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/keys/certificate.h"
#include "base/keys/identity.h"

namespace kiln {
namespace {

constexpr int kWaitSeconds = 60;

}  // namespace

void TestHttpClient::Freer::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }
void TestHttpClient::Freer::operator()(ssl_st* ssl) const { SSL_free(ssl); }

StatusOr<TestHttpClient> TestHttpClient::Connect(int port) {
  signal(SIGPIPE, SIG_IGN);
  TestHttpClient client;
  client.port_ = port;
  client.socket_ = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval wait{kWaitSeconds, 0};
  setsockopt(client.socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
  setsockopt(client.socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(client.socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
      0) {
    return Unavailable("no connection to port {}", port);
  }
  return client;
}

StatusOr<TestHttpClient> TestHttpClient::ConnectTls(int port, const KeyFolder& trusted,
                                                    const KeyFolder* shown) {
  KILN_ASSIGN_OR_RETURN(TestHttpClient client, Connect(port));
  client.context_.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* const context = client.context_.get();
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context), trusted.authority.handle());
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (shown != nullptr && (SSL_CTX_use_certificate(context, shown->certificate.handle()) != 1 ||
                           SSL_CTX_use_PrivateKey(context, shown->key.handle()) != 1)) {
    return Internal("OpenSSL refuses the client's keys");
  }
  client.ssl_.reset(SSL_new(context));
  SSL_set1_host(client.ssl_.get(), kDaemonHost);
  SSL_set_fd(client.ssl_.get(), client.socket_.get());
  if (SSL_connect(client.ssl_.get()) != 1) return Unavailable("no TLS with port {}", port);
  return client;
}

std::string TestHttpClient::ServerSerial() const {
  if (ssl_ == nullptr) return "";
  return Certificate::Own(SSL_get1_peer_certificate(ssl_.get())).Serial();
}

bool TestHttpClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ssl_ != nullptr
                              ? SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()))
                              : send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

bool TestHttpClient::SendGet(std::string_view path, std::string_view lines) {
  return Send(fmt::format("GET {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n{}\r\n",
                          path, port_, lines));
}

std::string TestHttpClient::ReadUntil(std::string_view end) {
  std::string all;
  std::array<char, 4096> buffer;
  while (end.empty() || all.find(end) == std::string::npos) {
    const ssize_t count = ssl_ != nullptr
                              ? SSL_read(ssl_.get(), buffer.data(), static_cast<int>(buffer.size()))
                              : recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (count <= 0) break;
    all.append(buffer.data(), static_cast<size_t>(count));
  }
  return all;
}

}  // namespace kiln
