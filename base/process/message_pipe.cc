#include "base/process/message_pipe.h"

#include <endian.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/errno_status.h"

namespace kiln {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

int64_t DeadlineAfter(absl::Duration timeout) {
  if (timeout >= absl::Hours(24 * 365)) return kNever;
  return Clock::Real().MonotonicNanos() + absl::ToInt64Nanoseconds(timeout);
}

// Returns OK if the socket can be read or written, or has failed, which the next call will report.
Status AwaitReady(int fd, short events, int64_t deadline_ns) {
  while (true) {
    int timeout_ms = -1;
    if (deadline_ns != kNever) {
      const int64_t left_ns = deadline_ns - Clock::Real().MonotonicNanos();
      timeout_ms = static_cast<int>(
          std::clamp<int64_t>((left_ns + 999'999) / 1'000'000, 0, std::numeric_limits<int>::max()));
    }
    pollfd poll_fd{fd, events, 0};
    const int ready = poll(&poll_fd, 1, timeout_ms);
    if (ready > 0) return OkStatus();
    if (ready == 0) return DeadlineExceeded("the other process did not answer in time");
    if (errno != EINTR) return ErrnoStatus(errno, "cannot poll descriptor {}", fd);
  }
}

// `control` has room for one descriptor.
void AttachDescriptor(int descriptor, std::span<char> control, msghdr& header) {
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* const more = CMSG_FIRSTHDR(&header);
  more->cmsg_level = SOL_SOCKET;
  more->cmsg_type = SCM_RIGHTS;
  more->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(more), &descriptor, sizeof(descriptor));
}

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

// Receives like recv, and keeps a descriptor that comes along.
ssize_t MessagePipe::Receive(char* into, size_t size) {
  iovec part{into, size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t n = recvmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const cmsghdr* const more = n > 0 ? CMSG_FIRSTHDR(&header) : nullptr;
  if (more != nullptr && more->cmsg_level == SOL_SOCKET && more->cmsg_type == SCM_RIGHTS &&
      more->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(more), sizeof(fd));
    received_.Reset(fd);
  }
  return n;
}

// Reads into[filled, size). kOutOfRange at the end of the stream.
Status MessagePipe::Fill(char* into, size_t size, size_t& filled, int64_t deadline_ns) {
  while (filled < size) {
    const ssize_t n = Receive(into + filled, size - filled);
    if (n > 0) {
      filled += n;
    } else if (n == 0 || errno == ECONNRESET) {
      return OutOfRange("the other process has closed the pipe");
    } else if (WouldBlock(errno)) {
      KILN_RETURN_IF_ERROR(AwaitReady(socket_.get(), POLLIN, deadline_ns));
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, "cannot read descriptor {}", socket_.get());
    }
  }
  return OkStatus();
}

StatusOr<std::string> MessagePipe::Read(absl::Duration timeout, UniqueFd* descriptor) {
  const int64_t deadline_ns = DeadlineAfter(timeout);
  auto truncated = [&](const Status& status) -> Status {
    if (!IsEndOfPipe(status) || header_filled_ == 0) return status;
    return DataLoss("the other process has ended within a message");
  };
  if (header_filled_ < sizeof(header_)) {
    if (Status status = Fill(header_, sizeof(header_), header_filled_, deadline_ns); !status.ok()) {
      return truncated(status);
    }
  }
  uint32_t size;
  std::memcpy(&size, header_, sizeof(size));
  size = le32toh(size);
  if (size > max_message_bytes_) {
    return ResourceExhausted("a message of {} bytes is announced, the limit is {}", size,
                             max_message_bytes_);
  }
  // The buffer grows with the bytes that arrive, so that a wild length alone costs nothing.
  constexpr size_t kStepBytes = 1 << 20;
  while (body_filled_ < size) {
    body_.resize(std::min<size_t>(size, body_filled_ + std::max(kStepBytes, body_filled_)));
    if (Status status = Fill(body_.data(), body_.size(), body_filled_, deadline_ns); !status.ok()) {
      return truncated(status);
    }
  }
  header_filled_ = body_filled_ = 0;
  UniqueFd received = std::exchange(received_, UniqueFd());
  if (descriptor != nullptr) *descriptor = std::move(received);
  return std::exchange(body_, {});
}

Status MessagePipe::Write(std::string_view message, absl::Duration timeout, int descriptor) {
  if (message.size() > std::min<size_t>(max_message_bytes_, std::numeric_limits<uint32_t>::max())) {
    return InvalidArgument("a message of {} bytes is too long, the limit is {}", message.size(),
                           max_message_bytes_);
  }
  if (write_broken_) return FailedPrecondition("an earlier message was sent in part only");
  const int64_t deadline_ns = DeadlineAfter(timeout);
  const uint32_t size = htole32(static_cast<uint32_t>(message.size()));
  iovec parts[] = {{const_cast<uint32_t*>(&size), sizeof(size)},
                   {const_cast<char*>(message.data()), message.size()}};
  size_t left = sizeof(size) + message.size();
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  while (left > 0) {
    msghdr header{};
    header.msg_iov = parts;
    header.msg_iovlen = 2;
    if (descriptor >= 0) AttachDescriptor(descriptor, control, header);
    ssize_t n = sendmsg(socket_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      Status status = ErrnoStatus(errno, "cannot write descriptor {}", socket_.get());
      if (errno == EPIPE || errno == ECONNRESET) {
        status = Unavailable("the other process has closed the pipe");
      } else if (WouldBlock(errno)) {
        status = AwaitReady(socket_.get(), POLLOUT, deadline_ns);
        if (status.ok()) continue;
      }
      write_broken_ = left < sizeof(size) + message.size();
      return status;
    }
    left -= n;
    // The descriptor went with the first bytes.
    descriptor = -1;
    for (iovec& part : parts) {
      const size_t taken = std::min<size_t>(n, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + taken;
      part.iov_len -= taken;
      n -= static_cast<ssize_t>(taken);
    }
  }
  return OkStatus();
}

}  // namespace kiln
