#include "device/device_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "base/status_testing.h"

namespace kiln::device {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// ---- CPUs

class FakeFiles {
 public:
  std::map<std::string, std::string> files;
  std::map<std::string, int> reads;

  ReadText Read() {
    return [this](const std::string& path) -> StatusOr<std::string> {
      ++reads[path];
      const auto it = files.find(path);
      if (it == files.end()) return NotFound("no {}", path);
      return it->second;
    };
  }
};

constexpr char kCpuInfo[] =
    "processor\t: 0\nmodel name\t: x\ncpu MHz\t\t: 2000.4\n\n"
    "processor\t: 1\ncpu MHz\t\t: 3000.0\n\nprocessor\t: 2\ncpu MHz\t\t: 1000.0\n";

std::string Scaling(int core) {
  return fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", core);
}

TEST(CpuState, ReadsTheCoresInUse) {
  FakeFiles fake;
  fake.files = {{Scaling(0), "2100000\n"},
                {Scaling(1), "2300000\n"},
                {Scaling(2), "9999999\n"},
                {"/proc/loadavg", "3.25 2.00 1.00 1/100 4242\n"}};
  const DeviceState state = MakeCpuStateReader({0, 1}, fake.Read())->Read();
  EXPECT_EQ(state.cpu_mhz, 2200u);
  EXPECT_EQ(state.load, 3.25);
  EXPECT_EQ(state.steal_share, std::nullopt);
  EXPECT_EQ(fake.reads[Scaling(2)], 0);
  EXPECT_EQ(fake.reads["/proc/cpuinfo"], 0) << "it is slow on machines of many cores";
}

TEST(CpuState, ReadsCpuInfoWithoutCpufreq) {
  FakeFiles fake;
  fake.files = {{"/proc/cpuinfo", kCpuInfo}};
  EXPECT_EQ(MakeCpuStateReader({0, 1}, fake.Read())->Read().cpu_mhz, 2500u);
  EXPECT_EQ(fake.reads["/proc/cpuinfo"], 1);
  EXPECT_EQ(MakeCpuStateReader({2}, fake.Read())->Read().cpu_mhz, 1000u);
}

TEST(CpuState, StealIsCountedBetweenTwoReadings) {
  FakeFiles fake;
  std::string& stat = fake.files["/proc/stat"];
  const auto reader = MakeCpuStateReader({0}, fake.Read());
  stat = "cpu  1000 0 0 1000 0 0 0 500 0 0\n";
  EXPECT_EQ(reader->Read().steal_share, std::nullopt) << "the time before says nothing of now";
  stat = "cpu  1060 0 0 1020 0 0 0 520 0 0\n";
  EXPECT_DOUBLE_EQ(reader->Read().steal_share.value(), 0.2);
  EXPECT_DOUBLE_EQ(reader->Read().steal_share.value(), 0.2) << "no tick has passed";
  stat = "cpu  1160 0 0 1020 0 0 0 520 0 0\n";
  EXPECT_DOUBLE_EQ(reader->Read().steal_share.value(), 0);
}

TEST(CpuState, WhatIsMissingOrNonsenseIsNotSet) {
  FakeFiles fake;
  const auto reader = MakeCpuStateReader({0, 7}, fake.Read());
  EXPECT_EQ(reader->Read(), DeviceState());
  fake.files = {{Scaling(0), "<unknown>\n"},
                {"/proc/cpuinfo", "processor : x\ncpu MHz : \n"},
                {"/proc/loadavg", ""},
                {"/proc/stat", "intr 5\n"}};
  EXPECT_EQ(reader->Read(), DeviceState());
  EXPECT_EQ(reader->Read(), DeviceState());
}

TEST(CpuState, ThisMachineHasAState) {
  const DeviceState state = MakeCpuStateReader({0}, ReadSystemFile())->Read();
  EXPECT_TRUE(state.load.has_value());
}

// ---- GPUs

struct FakeGpu {
  std::string uuid = "GPU-1";
  unsigned sm = 1755, memory = 2619, degrees = 54, milliwatts = 412'400;
  unsigned long long reasons = 0x4 | 0x40;
  bool has_power = true;
  bool has_driver = true;
} gpu;

NvmlCalls FakeNvml() {
  gpu = FakeGpu();
  NvmlCalls calls;
  calls.handle_by_uuid = [](const char* uuid, NvmlCalls::Handle* handle) {
    *handle = &gpu;
    return uuid == gpu.uuid ? kNvmlSuccess : 6;
  };
  calls.clock = [](NvmlCalls::Handle, int type, unsigned* mhz) {
    *mhz = type == kNvmlSmClock ? gpu.sm : gpu.memory;
    return kNvmlSuccess;
  };
  calls.temperature = [](NvmlCalls::Handle, int, unsigned* degrees) {
    *degrees = gpu.degrees;
    return kNvmlSuccess;
  };
  calls.power = [](NvmlCalls::Handle, unsigned* milliwatts) {
    *milliwatts = gpu.milliwatts;
    return gpu.has_power ? kNvmlSuccess : 3;
  };
  calls.throttle_reasons = [](NvmlCalls::Handle, unsigned long long* bits) {
    *bits = gpu.reasons;
    return kNvmlSuccess;
  };
  calls.driver_version = [](char* text, unsigned bytes) {
    std::strncpy(text, "550.90.07", bytes);
    return gpu.has_driver ? kNvmlSuccess : 3;
  };
  return calls;
}

TEST(GpuState, ReadsTheDriversNumbers) {
  const NvmlCalls nvml = FakeNvml();
  const auto reader = MakeGpuStateReader("GPU-1", nvml);
  DeviceState state = reader->Read();
  EXPECT_EQ(state.sm_clock_mhz, 1755u);
  EXPECT_EQ(state.memory_clock_mhz, 2619u);
  EXPECT_EQ(state.temperature_c, 54u);
  EXPECT_DOUBLE_EQ(state.power_w.value(), 412.4);
  EXPECT_THAT(state.throttle_reasons, ElementsAre("sw_power_cap", "hw_thermal_slowdown"));
  EXPECT_EQ(state.driver, "550.90.07");
  EXPECT_EQ(state.cpu_mhz, std::nullopt);
  gpu.sm = 345;
  gpu.reasons = 0;
  state = reader->Read();
  EXPECT_EQ(state.sm_clock_mhz, 345u);
  EXPECT_THAT(state.throttle_reasons, IsEmpty());
}

TEST(GpuState, WhatTheDriverRefusesIsNotSet) {
  const NvmlCalls nvml = FakeNvml();
  EXPECT_EQ(MakeGpuStateReader("GPU-2", nvml)->Read(), DeviceState{.driver = "550.90.07"})
      << "no such GPU";
  gpu.has_power = false;
  gpu.has_driver = false;
  const DeviceState state = MakeGpuStateReader("GPU-1", nvml)->Read();
  EXPECT_EQ(state.power_w, std::nullopt);
  EXPECT_EQ(state.driver, "");
  EXPECT_EQ(state.temperature_c, 54u);
}

// ---- both

TEST(DeviceState, IsPrintedForPeople) {
  const NvmlCalls nvml = FakeNvml();
  EXPECT_EQ(PrintDeviceState(MakeGpuStateReader("GPU-1", nvml)->Read()),
            "SM 1755 MHz, memory 2619 MHz, 54 C, 412 W, sw_power_cap, hw_thermal_slowdown, "
            "driver 550.90.07");
  EXPECT_EQ(PrintDeviceState({.cpu_mhz = 2200, .steal_share = 0.013, .load = 1.26}),
            "2200 MHz, 1.3% stolen, load 1.3");
  EXPECT_EQ(PrintDeviceState({}), "");
}

TEST(DeviceState, IsReadAtMostSoOften) {
  class Counter : public DeviceStateReader {
   public:
    DeviceState Read() override { return {.load = ++count_}; }

   private:
    double count_ = 0;
  };
  FakeClock clock;
  const auto reader = MakeCachedReader(std::make_unique<Counter>(), absl::Milliseconds(100), clock);
  EXPECT_EQ(reader->Read().load, 1);
  clock.Advance(absl::Milliseconds(99));
  EXPECT_EQ(reader->Read().load, 1);
  clock.Advance(absl::Milliseconds(2));
  EXPECT_EQ(reader->Read().load, 2);
}

}  // namespace
}  // namespace kiln::device
