#include "base/process/stop_signal.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/errno_status.h"

namespace kiln {
namespace {

bool IsIgnored(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  // Under nohup SIGHUP stays ignored.
  if (!IsIgnored(SIGHUP)) sigaddset(&set, SIGHUP);
  return set;
}

void SetBlocked(bool blocked) {
  const sigset_t set = StopSignals();
  pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

StopSignal::StopSignal() {
  SetBlocked(true);
  signal(SIGPIPE, SIG_IGN);
  // A file at its limit is an error of the write, like a full disk.
  signal(SIGXFSZ, SIG_IGN);
  const sigset_t set = StopSignals();
  signal_fd_.Reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  trigger_fd_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  KILN_CHECK(signal_fd_.valid() && trigger_fd_.valid(), "{}", ErrnoText(errno));
}

StopSignal::~StopSignal() { SetBlocked(false); }

int StopSignal::Wait() {
  while (true) {
    if (auto signal = WaitFor(absl::Hours(24))) return *signal;
  }
}

std::optional<int> StopSignal::WaitFor(absl::Duration timeout) {
  Clock& clock = Clock::Real();
  const double end = clock.MonotonicSeconds() + absl::ToDoubleSeconds(timeout);
  while (true) {
    const double left_ms = 1e3 * (end - clock.MonotonicSeconds());
    pollfd fds[] = {{signal_fd_.get(), POLLIN, 0}, {trigger_fd_.get(), POLLIN, 0}};
    poll(fds, 2, static_cast<int>(std::clamp(left_ms + 1, 0.0, 1e9)));
    signalfd_siginfo info;
    if (read(signal_fd_.get(), &info, sizeof(info)) == sizeof(info)) {
      SetBlocked(false);
      return static_cast<int>(info.ssi_signo);
    }
    // The descriptor is never read, so it stays triggered.
    if (fds[1].revents != 0) return 0;
    if (left_ms <= 0) return std::nullopt;
  }
}

void StopSignal::Trigger() {
  const uint64_t one = 1;
  if (write(trigger_fd_.get(), &one, sizeof(one)) < 0) {
    // The counter is full: it has been triggered before.
  }
}

}  // namespace kiln
