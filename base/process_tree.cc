#include "base/process_tree.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace kiln {

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code error;
  // The kernel lists them by the thread that started them.
  const std::filesystem::directory_iterator threads(fmt::format("/proc/{}/task", pid), error);
  if (error) return children;
  for (const auto& thread : threads) {
    std::ifstream list(thread.path() / "children");
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

bool HasEnded(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string line;
  // "PID (NAME) STATE ...", where the name may hold anything.
  if (!std::getline(stat, line, '\0')) return true;
  const size_t name_end = line.rfind(')');
  return name_end == std::string::npos || line.compare(name_end, 3, ") Z") == 0;
}

}  // namespace kiln
