#include "runner/device_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/process/file_access.h"

namespace kiln::runner {
namespace {

namespace fs = std::filesystem;

// Adds the paths of a list with ':' between.
void AddListed(const char* variable, std::vector<std::string>& paths) {
  const char* const value = std::getenv(variable);
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (rest.starts_with('/')) paths.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

// Returns the files of a folder whose names begin with one of these.
std::vector<std::string> Matching(const fs::path& folder,
                                  std::initializer_list<std::string_view> beginnings) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    for (const std::string_view beginning : beginnings) {
      if (name.starts_with(beginning)) paths.push_back(entries->path().string());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

void Append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

FileView CpuFiles() {
  FileView view{.read = SystemLibraryFolders()};
  Append(view.read, {"/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/fs/cgroup"});
  view.devices = {"/dev/null", "/dev/zero", "/dev/urandom"};
  return view;
}

FileView CudaFiles(const std::string& root) {
  FileView view = CpuFiles();
  // Libraries that are not where the system's are, and their configuration.
  Append(view.read, {"/usr/local/nvidia", "/usr/local/cuda", "/usr/share/nvidia", "/etc/nvidia"});
  AddListed("LD_LIBRARY_PATH", view.read);
  // GPUs on the bus, and the driver's modules.
  Append(view.read, {"/sys/devices", "/sys/bus/pci", "/sys/class/pci_bus"});
  Append(view.read, Matching(root + "/sys/module", {"nvidia"}));
  // The daemon that keeps the driver's state.
  Append(view.read, {"/run/nvidia-persistenced"});
  // nvidia0 and so on, nvidiactl, nvidia-uvm, nvidia-modeset, and the folder nvidia-caps of parts
  // of a GPU (MIG).
  Append(view.devices, Matching(root + "/dev", {"nvidia"}));
  // The pipes of a server that shares a GPU (MPS), and the cache of compiled kernels.
  AddListed("CUDA_MPS_PIPE_DIRECTORY", view.write);
  AddListed("CUDA_CACHE_PATH", view.write);
  view.has_shared_memory = true;
  // To the daemon that keeps the driver's state, and to a server that shares a GPU.
  view.has_sockets = true;
  return view;
}

}  // namespace kiln::runner
