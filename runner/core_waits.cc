#include "runner/core_waits.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/file/fd.h"

namespace kiln::runner {
namespace {

std::optional<ThreadCounts> ReadCounts(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[128];
  const ssize_t got = file.valid() ? read(file.get(), text, sizeof(text) - 1) : -1;
  if (got <= 0) return std::nullopt;
  text[got] = 0;
  ThreadCounts counts;
  if (sscanf(text, "%" SCNd64 " %" SCNd64, &counts.computed_ns, &counts.waited_ns) != 2) {
    return std::nullopt;
  }
  return counts;
}

}  // namespace

std::optional<CoreCounts> ReadCoreCounts(pid_t process) {
  const std::string folder = fmt::format("/proc/{}/task", process);
  const std::unique_ptr<DIR, int (*)(DIR*)> threads(opendir(folder.c_str()), closedir);
  if (threads == nullptr) return std::nullopt;
  CoreCounts counts;
  while (const dirent* thread = readdir(threads.get())) {
    const pid_t id = static_cast<pid_t>(std::strtol(thread->d_name, nullptr, 10));
    if (id <= 0) continue;
    // A thread may end meanwhile.
    if (const auto of_thread = ReadCounts(fmt::format("{}/{}/schedstat", folder, id))) {
      counts[id] = *of_thread;
    }
  }
  if (counts.empty()) return std::nullopt;
  return counts;
}

std::optional<ThreadCounts> ReadOwnCounts() { return ReadCounts("/proc/thread-self/schedstat"); }

CoreUse UseBetween(const CoreCounts& before, const CoreCounts& after) {
  CoreUse use;
  for (const auto& [id, last] : after) {
    const auto first = before.find(id);
    if (first == before.end()) continue;
    const auto computed_ns = static_cast<double>(last.computed_ns - first->second.computed_ns);
    use.longest_s = std::max(use.longest_s, 1e-9 * computed_ns);
    use.waited_s += 1e-9 * static_cast<double>(last.waited_ns - first->second.waited_ns);
  }
  return use;
}

}  // namespace kiln::runner
