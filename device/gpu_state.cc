#include <array>
#include <utility>

#include "device/device_state.h"

namespace kiln::device {
namespace {

struct Reason {
  unsigned long long bit;
  const char* name;
};
// nvmlClocksEventReasons of nvml.h.
constexpr Reason kThrottleReasons[] = {
    {0x1, "gpu_idle"},
    {0x2, "applications_clocks_setting"},
    {0x4, "sw_power_cap"},
    {0x8, "hw_slowdown"},
    {0x10, "sync_boost"},
    {0x20, "sw_thermal_slowdown"},
    {0x40, "hw_thermal_slowdown"},
    {0x80, "hw_power_brake_slowdown"},
    {0x100, "display_clock_setting"},
};

class GpuStateReader : public DeviceStateReader {
 public:
  GpuStateReader(const std::string& uuid, const NvmlCalls& nvml) : nvml_(nvml) {
    is_known_ = nvml.handle_by_uuid(uuid.c_str(), &gpu_) == kNvmlSuccess;
    std::array<char, 96> version{};
    if (nvml.driver_version(version.data(), version.size() - 1) == kNvmlSuccess) {
      driver_ = version.data();
    }
  }

  DeviceState Read() override {
    DeviceState state;
    state.driver = driver_;
    if (!is_known_) return state;
    state.sm_clock_mhz = ClockMhz(kNvmlSmClock);
    state.memory_clock_mhz = ClockMhz(kNvmlMemoryClock);
    unsigned value = 0;
    if (nvml_.temperature(gpu_, 0, &value) == kNvmlSuccess) state.temperature_c = value;
    if (nvml_.power(gpu_, &value) == kNvmlSuccess) state.power_w = 1e-3 * value;
    unsigned long long bits = 0;
    if (nvml_.throttle_reasons(gpu_, &bits) != kNvmlSuccess) return state;
    for (const auto& [bit, name] : kThrottleReasons) {
      if ((bits & bit) != 0) state.throttle_reasons.emplace_back(name);
    }
    return state;
  }

 private:
  std::optional<uint32_t> ClockMhz(int type) const {
    unsigned mhz = 0;
    if (nvml_.clock(gpu_, type, &mhz) != kNvmlSuccess) return std::nullopt;
    return mhz;
  }

  const NvmlCalls& nvml_;
  NvmlCalls::Handle gpu_ = nullptr;
  bool is_known_ = false;
  std::string driver_;
};

// Owns the library that it asks.
class DriverStateReader : public DeviceStateReader {
 public:
  DriverStateReader(std::unique_ptr<Nvml> nvml, const std::string& uuid)
      : nvml_(std::move(nvml)), gpu_(uuid, nvml_->calls()) {}
  DeviceState Read() override { return gpu_.Read(); }

 private:
  const std::unique_ptr<Nvml> nvml_;
  GpuStateReader gpu_;
};

}  // namespace

std::unique_ptr<DeviceStateReader> OpenGpuStateReader(const std::string& uuid) {
  std::unique_ptr<Nvml> nvml = Nvml::Open();
  if (nvml == nullptr) return nullptr;
  return std::make_unique<DriverStateReader>(std::move(nvml), uuid);
}

std::unique_ptr<DeviceStateReader> MakeGpuStateReader(const std::string& uuid,
                                                      const NvmlCalls& nvml) {
  return std::make_unique<GpuStateReader>(uuid, nvml);
}

}  // namespace kiln::device
