#include "rpc/hardware_message.h"

#include <type_traits>

namespace kiln {

// The message must have a field of the same type for each parameter.
#define KILN_CHECK_TYPE(type, name, value) \
  static_assert(std::is_same_v<decltype(v1::HardwareParams().name()), type>);
KILN_HARDWARE_PARAMS(KILN_CHECK_TYPE)
#undef KILN_CHECK_TYPE

v1::HardwareParams HardwareMessage(const HardwareParams& params) {
  v1::HardwareParams message;
#define KILN_SET(type, name, value) message.set_##name(params.name);
  KILN_HARDWARE_PARAMS(KILN_SET)
#undef KILN_SET
  return message;
}

HardwareParams HardwareParamsOf(const v1::HardwareParams& message) {
  HardwareParams params;
#define KILN_TAKE(type, name, value) params.name = message.name();
  KILN_HARDWARE_PARAMS(KILN_TAKE)
#undef KILN_TAKE
  return params;
}

}  // namespace kiln
