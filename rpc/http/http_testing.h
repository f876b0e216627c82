// A client of HTTP for tests: it sends what a test says, good or bad, and shows the bytes that come
// back.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/file/fd.h"
#include "base/keys/key_folder.h"
#include "base/status.h"

// OpenSSL's SSL_CTX and SSL.
struct ssl_ctx_st;
struct ssl_st;

namespace kiln {

// A connection to a port of 127.0.0.1. For one thread. What waits ends after a minute.
class TestHttpClient {
 public:
  // Connects without TLS.
  static StatusOr<TestHttpClient> Connect(int port);
  // Connects with TLS. The server has to be a daemon of the authority in `trusted`. `shown`: the
  // client's certificate and key; null = none.
  static StatusOr<TestHttpClient> ConnectTls(int port, const KeyFolder& trusted,
                                             const KeyFolder* shown);

  // Returns the serial number of the certificate that the server has shown; "" without TLS.
  std::string ServerSerial() const;
  // Returns whether all bytes were sent.
  bool Send(std::string_view bytes);
  // Sends "GET PATH" with a right Host and these lines, each of which ends with "\r\n"; the server
  // closes the connection after its reply.
  bool SendGet(std::string_view path, std::string_view lines = "");
  // Returns what comes until `end` has come, or until the connection ends.
  std::string ReadUntil(std::string_view end);
  std::string ReadAll() { return ReadUntil(""); }

 private:
  struct Freer {
    void operator()(ssl_ctx_st* context) const;
    void operator()(ssl_st* ssl) const;
  };
  TestHttpClient() = default;

  int port_ = 0;
  UniqueFd socket_;
  std::unique_ptr<ssl_ctx_st, Freer> context_;
  std::unique_ptr<ssl_st, Freer> ssl_;
};

}  // namespace kiln
