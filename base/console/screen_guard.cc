#include "base/console/screen_guard.h"

#include <unistd.h>

#include <cerrno>

#include "base/status.h"

namespace kiln {
namespace {

// Global state, because a signal handler has no other way to know of the guard.
struct {
  volatile int fd = -1;
  std::string_view enter, leave;
} guarded;

void Send(std::string_view text) {
  if (write(guarded.fd, text.data(), text.size()) < 0) {
    // The terminal is gone, and nobody reads on it.
  }
}

// The signal has its default action again while this runs, and the action takes place when this
// returns.
void OnDeath(int signal) {
  Send(guarded.leave);
  raise(signal);
}

void OnStop(int) {
  const int error = errno;
  Send(guarded.leave);
  raise(SIGSTOP);
  Send(guarded.enter);
  errno = error;
}

}  // namespace

ScreenGuard::ScreenGuard(int fd, std::string_view enter, std::string_view leave) {
  KILN_CHECK(guarded.fd < 0, "a second ScreenGuard");
  guarded.enter = enter;
  guarded.leave = leave;
  guarded.fd = fd;
  struct sigaction death{};
  death.sa_handler = OnDeath;
  death.sa_flags = static_cast<int>(SA_RESETHAND);
  for (size_t i = 0; i < kFatal.size(); ++i) sigaction(kFatal[i], &death, &before_fatal_[i]);
  struct sigaction stop{};
  stop.sa_handler = OnStop;
  stop.sa_flags = SA_RESTART;
  sigaction(SIGTSTP, &stop, &before_stop_);
}

ScreenGuard::~ScreenGuard() {
  sigaction(SIGTSTP, &before_stop_, nullptr);
  for (size_t i = 0; i < kFatal.size(); ++i) sigaction(kFatal[i], &before_fatal_[i], nullptr);
  guarded.fd = -1;
}

}  // namespace kiln
