#include "base/process_tree.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

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

}  // namespace kiln
