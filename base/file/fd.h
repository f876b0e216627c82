// File descriptors with an owner. All of them are close-on-exec: a child gets only what
// base/process/subprocess.h hands it.
#pragma once

#include <utility>

#include "base/status.h"

namespace kiln {

// Owns one descriptor and closes it. Not thread-safe.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    Reset(other.Release());
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
StatusOr<Pipe> MakePipe();

// A connected pair of stream sockets (AF_UNIX), for base/process/message_pipe.h.
StatusOr<std::pair<UniqueFd, UniqueFd>> MakeSocketPair();

}  // namespace kiln
