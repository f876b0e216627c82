// Messages over a stream socket (MakeSocketPair): a 32-bit little-endian length, then that many
// bytes. Between a process and its children; what the bytes mean is theirs to agree.
//
// One thread may read while another writes; no two may do the same. Owns its descriptor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/fd.h"
#include "base/status.h"

namespace kiln {

class MessagePipe {
 public:
  static constexpr size_t kDefaultMaxBytes = size_t{1} << 30;

  MessagePipe() = default;
  explicit MessagePipe(UniqueFd socket, size_t max_message_bytes = kDefaultMaxBytes)
      : socket_(std::move(socket)), max_message_bytes_(max_message_bytes) {}
  MessagePipe(MessagePipe&&) = default;
  MessagePipe& operator=(MessagePipe&&) = default;

  // The next message.
  //   kOutOfRange         the other end has closed between two messages: the normal end
  //                       (IsEndOfPipe)
  //   kDataLoss           the other end has closed, or died, within a message
  //   kDeadlineExceeded   nothing is lost: the next Read goes on where this one stopped
  //   kResourceExhausted  the announced length is above the maximum; the pipe is of no more use
  // A descriptor that came with it goes to `descriptor`, which is invalid without one; where nobody
  // asks for it, it is closed.
  StatusOr<std::string> Read(absl::Duration timeout = absl::InfiniteDuration(),
                             UniqueFd* descriptor = nullptr);

  //   kUnavailable        the other end has closed
  //   kInvalidArgument    longer than the maximum; nothing was sent
  //   kDeadlineExceeded   part of it may be sent: the pipe is of no more use, and later calls say
  //                       so
  // The other end gets a descriptor of its own for what `descriptor` stands for; -1: none.
  Status Write(std::string_view message, absl::Duration timeout = absl::InfiniteDuration(),
               int descriptor = -1);

  int fd() const { return socket_.get(); }
  bool valid() const { return socket_.valid(); }
  void Close() { socket_.Reset(); }

 private:
  Status Fill(char* into, size_t size, size_t& filled, int64_t deadline_ns);
  ssize_t Receive(char* into, size_t size);

  UniqueFd socket_;
  size_t max_message_bytes_ = kDefaultMaxBytes;
  // The message being read.
  char header_[4];
  size_t header_filled_ = 0;
  std::string body_;
  size_t body_filled_ = 0;
  UniqueFd received_;  // that came with it
  bool write_broken_ = false;
};

// The peer closed in order.
inline bool IsEndOfPipe(const Status& status) { return status.code() == StatusCode::kOutOfRange; }

}  // namespace kiln
