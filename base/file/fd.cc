#include "base/file/fd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/errno_status.h"

namespace kiln {

void UniqueFd::Reset(int fd) {
  if (fd_ >= 0 && fd_ != fd) close(fd_);
  fd_ = fd;
}

StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

StatusOr<std::pair<UniqueFd, UniqueFd>> MakeSocketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return ErrnoStatus(errno, "cannot make a socket pair");
  }
  return std::make_pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

}  // namespace kiln
