#include "rpc/http/socket_stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "base/keys/certificate.h"

namespace kiln {
namespace {

int PollOne(int socket, short events, absl::Duration time, short& happened) {
  pollfd one{socket, events, 0};
  const int64_t ms =
      std::clamp<int64_t>(absl::ToInt64Milliseconds(absl::Ceil(time, absl::Milliseconds(1))), 0,
                          std::numeric_limits<int>::max());
  const int count = poll(&one, 1, static_cast<int>(ms));
  happened = one.revents;
  return count;
}

}  // namespace

void SocketStream::SslFreer::operator()(ssl_st* ssl) const { SSL_free(ssl); }

SocketStream::~SocketStream() {
  if (ssl_ == nullptr || SSL_is_init_finished(ssl_.get()) == 0) return;
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

bool SocketStream::StartTls(const std::shared_ptr<ssl_ctx_st>& context) {
  ERR_clear_error();
  ssl_.reset(SSL_new(context.get()));
  if (ssl_ == nullptr || SSL_set_fd(ssl_.get(), socket_) != 1) return false;
  while (true) {
    ERR_clear_error();
    const int result = SSL_accept(ssl_.get());
    if (result == 1) return true;
    if (!WaitForTls(result)) return false;
  }
}

void SocketStream::Allow(absl::Duration time, size_t bytes) {
  deadline_s_ = Clock::Real().MonotonicSeconds() + absl::ToDoubleSeconds(time);
  bytes_left_ = bytes;
}

bool SocketStream::WaitFor(short events) const {
  while (true) {
    const double left_s = deadline_s_ - Clock::Real().MonotonicSeconds();
    if (left_s <= 0) return false;
    short happened = 0;
    const int count = PollOne(socket_, events, absl::Seconds(left_s), happened);
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

bool SocketStream::WaitForTls(int result) const {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return WaitFor(POLLIN);
    case SSL_ERROR_WANT_WRITE:
      return WaitFor(POLLOUT);
    default:
      return false;
  }
}

ssize_t SocketStream::Fill() {
  while (true) {
    if (ssl_ != nullptr) {
      ERR_clear_error();
      const int count = SSL_read(ssl_.get(), buffer_.data(), static_cast<int>(buffer_.size()));
      if (count > 0) return count;
      if (SSL_get_error(ssl_.get(), count) == SSL_ERROR_ZERO_RETURN) return 0;
      if (!WaitForTls(count)) return -1;
      continue;
    }
    const ssize_t count = recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (count >= 0) return count;
    if (errno == EINTR) continue;
    if ((errno != EAGAIN && errno != EWOULDBLOCK) || !WaitFor(POLLIN)) return -1;
  }
}

ssize_t SocketStream::Read(char* to, size_t size) {
  if (begin_ == end_) {
    const ssize_t count = Fill();
    if (count <= 0) return count;
    begin_ = 0;
    end_ = static_cast<size_t>(count);
  }
  const size_t take = std::min({size, end_ - begin_, bytes_left_});
  // Bytes that come one by one do not begin a new time.
  if (take == 0 || Clock::Real().MonotonicSeconds() >= deadline_s_) return -1;
  std::memcpy(to, buffer_.data() + begin_, take);
  begin_ += take;
  bytes_left_ -= take;
  return static_cast<ssize_t>(take);
}

bool SocketStream::WritePart(const char*& from, size_t& size) {
  ssize_t count = 0;
  if (ssl_ != nullptr) {
    ERR_clear_error();
    const size_t part = std::min<size_t>(size, std::numeric_limits<int>::max());
    count = SSL_write(ssl_.get(), from, static_cast<int>(part));
    if (count <= 0) return WaitForTls(static_cast<int>(count));
  } else {
    count = send(socket_, from, size, MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) return true;
      return (errno == EAGAIN || errno == EWOULDBLOCK) && WaitFor(POLLOUT);
    }
  }
  from += count;
  size -= static_cast<size_t>(count);
  return true;
}

bool SocketStream::Write(const char* from, size_t size) {
  while (size > 0) {
    if (Clock::Real().MonotonicSeconds() >= deadline_s_ || !WritePart(from, size)) return false;
  }
  return true;
}

bool SocketStream::WaitReadable(absl::Duration time) {
  if (begin_ < end_ || (ssl_ != nullptr && SSL_pending(ssl_.get()) > 0)) return true;
  short happened = 0;
  return PollOne(socket_, POLLIN | POLLRDHUP, time, happened) > 0;
}

bool SocketStream::PeerHasLeft() const {
  short happened = 0;
  return PollOne(socket_, POLLRDHUP, absl::ZeroDuration(), happened) > 0;
}

std::string SocketStream::PeerCertificate() const {
  if (ssl_ == nullptr) return "";
  X509* const certificate = SSL_get1_peer_certificate(ssl_.get());
  return certificate == nullptr ? "" : Certificate::Own(certificate).ToPem();
}

}  // namespace kiln
