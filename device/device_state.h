// The state of a device while it measures: clocks, temperature, power and load, as far as the
// machine tells. The message of the same name has the same fields (rpc/device_message.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "device/nvml.h"

namespace kiln::device {

// A field that is not set is not known.
struct DeviceState {
  // A GPU's.
  std::optional<uint32_t> sm_clock_mhz = {};
  std::optional<uint32_t> memory_clock_mhz = {};
  std::optional<uint32_t> temperature_c = {};
  std::optional<double> power_w = {};
  // Reasons why the clocks are lower than they could be, by NVML's names: "sw_power_cap".
  std::vector<std::string> throttle_reasons = {};
  std::string driver = {};
  // A CPU's: mean frequency of the cores in use, share of the machine's time that the hypervisor
  // gave to others since the last reading, load average of the last minute.
  std::optional<uint32_t> cpu_mhz = {};
  std::optional<double> steal_share = {};
  std::optional<double> load = {};
  bool operator==(const DeviceState&) const = default;
};

// "SM 1755 MHz, memory 2619 MHz, 54 C, 412 W, sw_power_cap, driver 550.90"; "" = nothing is known.
std::string PrintDeviceState(const DeviceState& state);

// Reads the state of one device. Never fails; what cannot be read is not set.
class DeviceStateReader {
 public:
  virtual ~DeviceStateReader() = default;
  virtual DeviceState Read() = 0;
};

// Reads a GPU by its UUID ("GPU-..."). `nvml` outlives the reader. Cost: six calls of NVML, 10 us
// to some milliseconds each. Thread-safe.
std::unique_ptr<DeviceStateReader> MakeGpuStateReader(const std::string& uuid,
                                                      const NvmlCalls& nvml);

// The same by the library of this machine's driver. Null: there is none.
std::unique_ptr<DeviceStateReader> OpenGpuStateReader(const std::string& uuid);

// Returns the content of a file of /proc or /sys.
using ReadText = std::function<StatusOr<std::string>(const std::string& path)>;
ReadText ReadSystemFile();

// Reads the frequency of these cores, and the load of the machine. Cost: some 10 us, and 10 us for
// each core. Used by one thread at a time.
std::unique_ptr<DeviceStateReader> MakeCpuStateReader(std::vector<int> cores, ReadText read);

// Asks `reader` only if its last answer is older than `age`. Thread-safe.
std::unique_ptr<DeviceStateReader> MakeCachedReader(std::unique_ptr<DeviceStateReader> reader,
                                                    absl::Duration age, Clock& clock);

}  // namespace kiln::device
