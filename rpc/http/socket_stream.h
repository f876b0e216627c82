// The bytes of a connection, plain or of TLS, within limits of time and size.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"

// OpenSSL's SSL_CTX and SSL.
struct ssl_ctx_st;
struct ssl_st;

namespace kiln {

// For one thread at a time. The socket belongs to the caller, does not block, and outlives the
// stream. Another thread may shut the socket down, which ends what waits here.
class SocketStream {
 public:
  explicit SocketStream(int socket) : socket_(socket) {}
  // Tells a peer of TLS that nothing follows, without waiting.
  ~SocketStream();
  SocketStream(const SocketStream&) = delete;
  SocketStream& operator=(const SocketStream&) = delete;

  // Makes the stream one of TLS. Called before the first byte, after Allow. False if the peer does
  // not speak TLS, or not in time.
  bool StartTls(const std::shared_ptr<ssl_ctx_st>& context);

  // Sets the limits until the next call: everything that waits ends after `time`, and at most
  // `bytes` are read.
  void Allow(absl::Duration time, size_t bytes);

  // Returns the number of bytes, at least 1; 0 at the end of the stream; -1 after an error, the end
  // of the time or too many bytes.
  ssize_t Read(char* to, size_t size);
  // Writes all bytes. False after an error or the end of the time.
  bool Write(const char* from, size_t size);

  // Waits until there is something to read, the end included. False after `time`.
  bool WaitReadable(absl::Duration time);
  // Returns whether the peer has closed the connection, as far as it is known without waiting.
  bool PeerHasLeft() const;

  // Returns the certificate whose key the peer has, in PEM; "" = none, or plain text.
  std::string PeerCertificate() const;

 private:
  struct SslFreer {
    void operator()(ssl_st* ssl) const;
  };

  // Reads what there is, at least one byte, into the buffer.
  ssize_t Fill();
  // Waits until the socket is ready for `events` of poll(). False at the end of the time.
  bool WaitFor(short events) const;
  // Waits for what TLS needs before it goes on. False after an error.
  bool WaitForTls(int result) const;
  bool WritePart(const char*& from, size_t& size);

  const int socket_;
  std::unique_ptr<ssl_st, SslFreer> ssl_;
  double deadline_s_ = 0;
  size_t bytes_left_ = 0;
  std::array<char, 4096> buffer_;
  size_t begin_ = 0, end_ = 0;
};

}  // namespace kiln
