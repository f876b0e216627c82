// Which cores of this machine are near a device, and which of them are threads of one physical
// core.
//
// Reads small files of /sys at each question. Any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kiln::client {

class HostTopology {
 public:
  // `allowed`: the cores that this process may use, ascending (runtime::AllowedCores; a control
  // group makes them fewer). Tests read the files below another `root` than "".
  explicit HostTopology(std::vector<int> allowed, std::string root = "")
      : allowed_(std::move(allowed)), root_(std::move(root)) {}

  const std::vector<int>& allowed() const { return allowed_; }

  // Returns the allowed cores of the device's memory node, ascending. `pci_address`:
  // "0000:3b:00.0". Empty: the machine does not say, or none of them is allowed.
  std::vector<int> Near(const std::string& pci_address) const;

  // Returns the first thread of the physical core of which `core` is a thread; `core` itself if the
  // machine does not say.
  int PhysicalCore(int core) const;

 private:
  std::vector<int> ReadList(const std::string& path) const;

  const std::vector<int> allowed_;
  const std::string root_;
};

}  // namespace kiln::client
