// NVIDIA's management library, as far as Kiln asks it. The driver brings it; nothing is linked.
#pragma once

#include <memory>

namespace kiln::device {

// Functions of the library. Each returns kNvmlSuccess or an error of nvml.h. Names with versions
// exist in drivers since 2021. Tests give their own.
struct NvmlCalls {
  using Handle = void*;
  struct Utilization {
    unsigned gpu, memory;
  };

  int (*count)(unsigned* gpus) = nullptr;
  int (*handle_by_index)(unsigned index, Handle* gpu) = nullptr;
  int (*handle_by_uuid)(const char* uuid, Handle* gpu) = nullptr;
  int (*processes)(Handle gpu, unsigned* count, void* infos) = nullptr;
  int (*utilization)(Handle gpu, Utilization* used) = nullptr;
  // Clock in MHz; `type` is kNvmlSmClock or kNvmlMemoryClock.
  int (*clock)(Handle gpu, int type, unsigned* mhz) = nullptr;
  // Degrees Celsius; `sensor` is 0, the GPU.
  int (*temperature)(Handle gpu, int sensor, unsigned* degrees) = nullptr;
  int (*power)(Handle gpu, unsigned* milliwatts) = nullptr;
  // Bits of kThrottleReasons in gpu_state.cc.
  int (*throttle_reasons)(Handle gpu, unsigned long long* bits) = nullptr;
  int (*driver_version)(char* text, unsigned bytes) = nullptr;
};

inline constexpr int kNvmlSuccess = 0, kNvmlInsufficientSize = 7;
inline constexpr int kNvmlSmClock = 1, kNvmlMemoryClock = 2;

// The library, open until the object is destroyed. Thread-safe, as NVML is.
class Nvml {
 public:
  // Null: this machine has no such library, no driver, or one without these functions. Takes
  // milliseconds.
  static std::unique_ptr<Nvml> Open();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const NvmlCalls& calls() const { return calls_; }

 private:
  Nvml() = default;

  void* library_ = nullptr;
  int (*shutdown_)() = nullptr;
  NvmlCalls calls_;
};

}  // namespace kiln::device
