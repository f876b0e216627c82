#include "rpc/device_message.h"

#include <type_traits>

namespace kiln {

// The message must have a field of the same type for each number.
#define KILN_CHECK_TYPE(type, number, largest) \
  static_assert(std::is_same_v<decltype(v1::DeviceModel().number()), type>);
KILN_DEVICE_NUMBERS(KILN_CHECK_TYPE)
#undef KILN_CHECK_TYPE

v1::DeviceModel DeviceMessage(const device::DeviceModel& model) {
  v1::DeviceModel message;
  message.set_name(model.name);
#define KILN_SET(type, number, largest) message.set_##number(model.number);
  KILN_DEVICE_NUMBERS(KILN_SET)
#undef KILN_SET
  return message;
}

StatusOr<device::DeviceModel> DeviceModelOf(const v1::DeviceModel& message) {
  device::DeviceModel model;
  model.name = message.name();
#define KILN_TAKE(type, number, largest) model.number = message.number();
  KILN_DEVICE_NUMBERS(KILN_TAKE)
#undef KILN_TAKE
  KILN_RETURN_IF_ERROR(device::CheckDeviceModel(model));
  return model;
}

StatusOr<device::DeviceModel> DeviceModelOf(const v1::WorkerState& runner) {
  if (!runner.has_device_model()) {
    return InvalidArgument(
        "runner '{}' (version {}) announces no device model, expected one; all parts of a cluster "
        "are of one version: start a runner of this one",
        runner.id(), runner.version().empty() ? "unknown" : runner.version());
  }
  auto model = DeviceModelOf(runner.device_model());
  if (model.ok()) return model;
  return InvalidArgument("runner '{}': {}", runner.id(), Message(model.status()));
}

}  // namespace kiln
