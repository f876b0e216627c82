#include "runtime/network_device_kinds.h"

#include <algorithm>
#include <string>

namespace kiln::runtime {

NetworkDeviceKinds AllNetworkDeviceKinds() {
  static constexpr const NetworkDeviceKind* kAll[] = {&kCpuDevice, &kCudaDevice};
  return kAll;
}

StatusOr<const NetworkDeviceKind*> FindNetworkDeviceKind(std::string_view target,
                                                         NetworkDeviceKinds kinds) {
  const auto found = std::ranges::find(kinds, target, &NetworkDeviceKind::target);
  if (found != kinds.end()) return *found;
  std::string known;
  for (const NetworkDeviceKind* kind : kinds) {
    if (!known.empty()) known += kind == kinds.back() ? " or " : ", ";
    known += kind->target;
  }
  return FailedPrecondition(
      "the file was compiled for the {} target, and networks run on {} only: compile it again for "
      "one that runs",
      target, known);
}

std::string DeviceText(DlDevice device, NetworkDeviceKinds kinds) {
  const auto found = std::ranges::find(kinds, device.type, &NetworkDeviceKind::dl_type);
  if (found == kinds.end()) {
    return fmt::format("device {} of DLPack type {}", device.number, device.type);
  }
  return (*found)->is_numbered ? fmt::format("{} {}", (*found)->noun, device.number)
                               : std::string((*found)->noun);
}

}  // namespace kiln::runtime
