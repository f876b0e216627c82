#include "client/cli/jobs/owner.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace kiln::client {
namespace {

// More without a newline is no line.
constexpr size_t kMaxText = 1 << 16;

bool HasOtherEnd(int input) {
  struct stat found{};
  return fstat(input, &found) == 0 && (S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode));
}

}  // namespace

Owner::Owner(int input) : input_(input), exists_(HasOtherEnd(input)), parent_(getppid()) {}

bool Owner::IsGone() {
  if (!exists_) return false;
  char bytes[4096];
  while (!closed_) {
    pollfd ready{input_, POLLIN, 0};
    if (poll(&ready, 1, 0) <= 0) break;
    const ssize_t size = read(input_, bytes, sizeof(bytes));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      closed_ = true;
    } else if (text_.size() < kMaxText) {
      text_.append(bytes, static_cast<size_t>(size));
    }
  }
  return closed_ || getppid() != parent_;
}

std::vector<std::string> Owner::TakeLines() {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(text_.substr(begin, end - begin));
  }
  text_.erase(0, begin);
  return lines;
}

}  // namespace kiln::client
