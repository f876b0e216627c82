#include "base/process/process_tree.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace kiln {

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code error;
  // The kernel lists children by the thread that started them.
  const std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", pid), error);
  if (error) return children;
  for (const auto& thread : threads) {
    std::ifstream list(thread.path() / "children");
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

namespace {

// Returns 'R', 'S', 'T', 'Z', ...; '\0': there is no such process.
char StateOf(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string line;
  // The line is "PID (NAME) STATE ...", where the name may hold anything.
  if (!std::getline(stat, line, '\0')) return '\0';
  const size_t name_end = line.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= line.size() ? '\0' : line[name_end + 2];
}

// Limit of a chain of processes. Longer chains belong to no build and no program.
constexpr int kDeepest = 64;

pid_t FindStopped(pid_t pid, int depth) {
  if (StateOf(pid) == 'T') return pid;
  if (depth == kDeepest) return 0;
  for (const pid_t child : ChildrenOf(pid)) {
    if (const pid_t stopped = FindStopped(child, depth + 1); stopped != 0) return stopped;
  }
  return 0;
}

}  // namespace

bool HasEnded(pid_t pid) {
  const char state = StateOf(pid);
  return state == '\0' || state == 'Z';
}

pid_t FindStopped(pid_t pid) { return FindStopped(pid, 0); }

}  // namespace kiln
