// Messages over a stream socket (MakeSocketPair) between a process and its children: a 32-bit
// little-endian length, then that many bytes. Callers define what the bytes mean.
//
// One thread may read while another writes; no two may do the same. The pipe owns its descriptor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/file/fd.h"
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

  // Reads the next message.
  //   kOutOfRange         the other end has closed between two messages: the normal end
  //                       (IsEndOfPipe)
  //   kDataLoss           the other end has closed, or died, within a message
  //   kDeadlineExceeded   nothing is lost: the next Read goes on where this one stopped
  //   kResourceExhausted  the announced length is above the maximum; the pipe is of no more use
  // A descriptor that came with the message goes to `descriptor`, which is invalid if none came. If
  // `descriptor` is null, a descriptor that came is closed.
  StatusOr<std::string> Read(absl::Duration timeout = absl::InfiniteDuration(),
                             UniqueFd* descriptor = nullptr);

  // Sends a message.
  //   kUnavailable        the other end has closed
  //   kInvalidArgument    the message is longer than the maximum; nothing was sent
  //   kDeadlineExceeded   a part may be sent: the pipe is of no more use, and later calls say so
  // The other end gets a descriptor of its own for the same file as `descriptor`; -1: none.
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
  // The message that is being read.
  char header_[4];
  size_t header_filled_ = 0;
  std::string body_;
  size_t body_filled_ = 0;
  // Descriptor that came with the message.
  UniqueFd received_;
  bool write_broken_ = false;
};

// Returns whether the peer has closed in order.
inline bool IsEndOfPipe(const Status& status) { return status.code() == StatusCode::kOutOfRange; }

}  // namespace kiln
