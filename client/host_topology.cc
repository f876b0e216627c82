#include "client/host_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/file/file.h"
#include "client/core_list.h"

namespace kiln::client {
namespace {

constexpr size_t kMaxBytes = 65536;

}  // namespace

std::vector<int> HostTopology::ReadList(const std::string& path) const {
  const auto text = ReadFile(root_ + path, kMaxBytes);
  if (!text.ok()) return {};
  return ParseCoreList(*text).value_or(std::vector<int>());
}

std::vector<int> HostTopology::Near(const std::string& pci_address) const {
  if (pci_address.empty()) return {};
  const std::string device = "/sys/bus/pci/devices/" + absl::AsciiStrToLower(pci_address);
  std::vector<int> near = ReadList(device + "/local_cpulist");
  if (near.empty()) {
    // The node is -1 where the machine has one alone, or does not say.
    const auto text = ReadFile(root_ + device + "/numa_node", kMaxBytes);
    int node = -1;
    if (text.ok() && absl::SimpleAtoi(*text, &node) && node >= 0) {
      near = ReadList(fmt::format("/sys/devices/system/node/node{}/cpulist", node));
    }
  }
  std::vector<int> both;
  std::ranges::set_intersection(near, allowed_, std::back_inserter(both));
  return both;
}

int HostTopology::PhysicalCore(int core) const {
  const std::vector<int> threads =
      ReadList(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", core));
  return threads.empty() ? core : threads.front();
}

}  // namespace kiln::client
