#include "device/gpu_load.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace kiln::device {
namespace {

// The numbers are those of nvml.h. Names with versions exist in drivers since 2021.
constexpr int kSuccess = 0, kInsufficientSize = 7;
using Handle = void*;
struct Utilization {
  unsigned gpu, memory;
};

class Nvml {
 public:
  Nvml() {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library_ == nullptr) return;
    Find("nvmlInit_v2", init_);
    Find("nvmlShutdown", shutdown_);
    Find("nvmlDeviceGetCount_v2", count_);
    Find("nvmlDeviceGetHandleByIndex_v2", handle_);
    Find("nvmlDeviceGetComputeRunningProcesses_v3", processes_);
    Find("nvmlDeviceGetUtilizationRates", utilization_);
    const bool complete = init_ && shutdown_ && count_ && handle_ && processes_ && utilization_;
    is_open_ = complete && init_() == kSuccess;
  }
  ~Nvml() {
    if (is_open_) shutdown_();
    if (library_ != nullptr) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::string Text() const {
    unsigned gpus = 0;
    if (!is_open_ || count_(&gpus) != kSuccess) return {};
    std::string text;
    for (unsigned i = 0; i < gpus; ++i) {
      const std::string one = TextOf(i);
      if (!one.empty()) text += (text.empty() ? "" : "; ") + one;
    }
    return text;
  }

 private:
  template <typename Function>
  void Find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
  }

  std::string TextOf(unsigned index) const {
    Handle gpu = nullptr;
    Utilization used{};
    unsigned processes = 0;
    if (handle_(index, &gpu) != kSuccess || utilization_(gpu, &used) != kSuccess) return {};
    // Without room for any process, the call says how many there are.
    const int listed = processes_(gpu, &processes, nullptr);
    if (listed != kSuccess && listed != kInsufficientSize) return {};
    return fmt::format("GPU {}: {} process{}, {}% busy", index,
                       processes == 0 ? "no" : fmt::format("{}", processes),
                       processes > 1 ? "es" : "", used.gpu);
  }

  void* library_ = nullptr;
  bool is_open_ = false;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*handle_)(unsigned, Handle*) = nullptr;
  int (*processes_)(Handle, unsigned*, void*) = nullptr;
  int (*utilization_)(Handle, Utilization*) = nullptr;
};

}  // namespace

std::string GpuLoadText() { return Nvml().Text(); }

}  // namespace kiln::device
