#include "rpc/device_state_message.h"

namespace kiln {

v1::DeviceState DeviceStateMessage(const device::DeviceState& state) {
  v1::DeviceState message;
  if (state.sm_clock_mhz) message.set_sm_clock_mhz(*state.sm_clock_mhz);
  if (state.memory_clock_mhz) message.set_memory_clock_mhz(*state.memory_clock_mhz);
  if (state.temperature_c) message.set_temperature_c(*state.temperature_c);
  if (state.power_w) message.set_power_w(*state.power_w);
  message.mutable_throttle_reasons()->Assign(state.throttle_reasons.begin(),
                                             state.throttle_reasons.end());
  message.set_driver(state.driver);
  if (state.cpu_mhz) message.set_cpu_mhz(*state.cpu_mhz);
  if (state.steal_share) message.set_steal_share(*state.steal_share);
  if (state.load) message.set_load(*state.load);
  return message;
}

device::DeviceState DeviceStateOf(const v1::DeviceState& message) {
  device::DeviceState state;
  if (message.has_sm_clock_mhz()) state.sm_clock_mhz = message.sm_clock_mhz();
  if (message.has_memory_clock_mhz()) state.memory_clock_mhz = message.memory_clock_mhz();
  if (message.has_temperature_c()) state.temperature_c = message.temperature_c();
  if (message.has_power_w()) state.power_w = message.power_w();
  state.throttle_reasons.assign(message.throttle_reasons().begin(),
                                message.throttle_reasons().end());
  state.driver = message.driver();
  if (message.has_cpu_mhz()) state.cpu_mhz = message.cpu_mhz();
  if (message.has_steal_share()) state.steal_share = message.steal_share();
  if (message.has_load()) state.load = message.load();
  return state;
}

}  // namespace kiln
