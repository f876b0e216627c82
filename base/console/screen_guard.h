// Gives the terminal back if a program that has taken its screen dies of a signal or is stopped
// with Ctrl-Z. Only after SIGKILL the screen stays as it is.
#pragma once

#include <signal.h>

#include <array>
#include <string_view>

namespace kiln {

// While this lives, a fatal signal sends `leave` to `fd` before its default action. Ctrl-Z sends
// `leave`, stops the process, and sends `enter` once the process continues. A process has at most
// one guard at a time. Both texts must outlive the guard. SIGINT, SIGTERM and SIGHUP are left to
// StopSignal.
class ScreenGuard {
 public:
  ScreenGuard(int fd, std::string_view enter, std::string_view leave);
  ~ScreenGuard();
  ScreenGuard(const ScreenGuard&) = delete;
  ScreenGuard& operator=(const ScreenGuard&) = delete;

  static constexpr std::array kFatal = {SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

 private:
  std::array<struct sigaction, kFatal.size()> before_fatal_;
  struct sigaction before_stop_;
};

}  // namespace kiln
