#include "device/device_state.h"

#include <fmt/format.h>

#include <mutex>

#include "base/file/file.h"

namespace kiln::device {
namespace {

constexpr size_t kMostBytes = 16 << 20;

class CachedReader : public DeviceStateReader {
 public:
  CachedReader(std::unique_ptr<DeviceStateReader> reader, absl::Duration age, Clock& clock)
      : reader_(std::move(reader)), age_(age), clock_(clock) {}

  DeviceState Read() override {
    std::lock_guard lock(mutex_);
    const int64_t now_ns = clock_.MonotonicNanos();
    if (!state_.has_value() || absl::Nanoseconds(now_ns - read_ns_) > age_) {
      state_ = reader_->Read();
      read_ns_ = now_ns;
    }
    return *state_;
  }

 private:
  std::mutex mutex_;
  const std::unique_ptr<DeviceStateReader> reader_;
  const absl::Duration age_;
  Clock& clock_;
  std::optional<DeviceState> state_;
  int64_t read_ns_ = 0;
};

}  // namespace

std::string PrintDeviceState(const DeviceState& state) {
  std::string text;
  const auto add = [&](std::string part) { text += (text.empty() ? "" : ", ") + std::move(part); };
  if (state.sm_clock_mhz) add(fmt::format("SM {} MHz", *state.sm_clock_mhz));
  if (state.memory_clock_mhz) add(fmt::format("memory {} MHz", *state.memory_clock_mhz));
  if (state.temperature_c) add(fmt::format("{} C", *state.temperature_c));
  if (state.power_w) add(fmt::format("{:.0f} W", *state.power_w));
  for (const std::string& reason : state.throttle_reasons) add(reason);
  if (!state.driver.empty()) add("driver " + state.driver);
  if (state.cpu_mhz) add(fmt::format("{} MHz", *state.cpu_mhz));
  if (state.steal_share) add(fmt::format("{:.1f}% stolen", 100 * *state.steal_share));
  if (state.load) add(fmt::format("load {:.1f}", *state.load));
  return text;
}

ReadText ReadSystemFile() {
  return [](const std::string& path) { return ReadFile(path, kMostBytes); };
}

std::unique_ptr<DeviceStateReader> MakeCachedReader(std::unique_ptr<DeviceStateReader> reader,
                                                    absl::Duration age, Clock& clock) {
  return std::make_unique<CachedReader>(std::move(reader), age, clock);
}

}  // namespace kiln::device
