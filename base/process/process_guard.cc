#include "base/process/process_guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>

namespace kiln {

void HideProcess() { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

void SetOomScore(int score) {
  // The file of a hidden process belongs to root.
  const bool hidden = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
  if (hidden) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  const std::string text = fmt::format("{}", score);
  if (const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); fd >= 0) {
    [[maybe_unused]] const auto written = write(fd, text.data(), text.size());
    close(fd);
  }
  if (hidden) HideProcess();
}

}  // namespace kiln
