#include "runner/cpu_description.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "base/file/file.h"
#include "runner/cpu_speed.h"

namespace kiln::runner {

std::string CpuModelNameIn(std::string_view cpuinfo) {
  for (std::string_view key : {"model name", "Model", "Hardware"}) {
    size_t at = 0;
    while (at < cpuinfo.size()) {
      const size_t end = std::min(cpuinfo.find('\n', at), cpuinfo.size());
      const std::string_view line = cpuinfo.substr(at, end - at);
      at = end + 1;
      const size_t colon = line.find(':');
      if (!line.starts_with(key) || colon == std::string_view::npos) continue;
      const size_t begin = line.find_first_not_of(" \t", colon + 1);
      if (begin == std::string_view::npos) continue;
      const size_t last = line.find_last_not_of(" \t\r");
      return std::string(line.substr(begin, last - begin + 1));
    }
  }
  return "unknown CPU";
}

std::string CpuModelName() {
  const auto cpuinfo = ReadFile("/proc/cpuinfo", 64 << 20);
  return CpuModelNameIn(cpuinfo.ok() ? std::string_view(*cpuinfo) : std::string_view());
}

std::string CpuLevel() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return "x86-64-v4";
  if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
  if (__builtin_cpu_supports("x86-64-v2")) return "x86-64-v2";
  return "x86-64";
#else
  utsname name{};
  return uname(&name) == 0 ? name.machine : "unknown";
#endif
}

v1::HardwareParams CpuHardware(int threads) {
  const std::string level = CpuLevel();
  v1::HardwareParams hardware;
  hardware.set_num_cores(threads);
  hardware.set_vector_unit_bytes(level == "x86-64-v4" ? 64 : level == "x86-64-v3" ? 32 : 16);
  hardware.set_cache_line_bytes(64);
  return hardware;
}

device::DeviceModel CpuDeviceModel(int threads) {
  const auto system = [](int name) { return std::max<int64_t>(0, sysconf(name)); };
  device::DeviceModel model;
  model.name = CpuModelName();
  model.cores = threads;
  model.vector_bytes = CpuHardware(threads).vector_unit_bytes();
  model.l1_bytes = system(_SC_LEVEL1_DCACHE_SIZE);
  model.l2_bytes = system(_SC_LEVEL2_CACHE_SIZE);
  model.l3_bytes = system(_SC_LEVEL3_CACHE_SIZE);
  model.memory_bytes = system(_SC_PHYS_PAGES) * system(_SC_PAGE_SIZE);
  model.clock_mhz = MeasureClockMhz();
  model.gflops_per_core = MeasureGflopsPerCore();
  return model;
}

int64_t LastLevelCacheBytes() {
  for (int name : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    const int64_t bytes = sysconf(name);
    if (bytes > 0) return bytes;
  }
  return 32 << 20;
}

}  // namespace kiln::runner
