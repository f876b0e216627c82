// A device that runs the kernels of one network: all that an executor asks of a target.
//
// The executor decides what is done when: it allocates memory, copies tensors and gives kernels
// their arguments. The device knows its memory, makes kernels of the network's binaries, and
// launches and times them. Copies and launches take place in the order of their calls, and may last
// until Synchronize returns.
//
// A device belongs to one executor, which calls one function at a time from any thread. All
// functions but number() are called between Enter and Leave (DeviceScope).
//
// A further target is a file with such a device and its row, and the row's line in
// network_device_kinds.{h,cc}. A device whose kernels are launched one after another derives from
// KernelByKernelDevice (kernel_by_kernel_device.h), which has the clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/network.h"

namespace kiln::runtime {

// A device as DLPack names it.
struct DlDevice {
  // DLDeviceType
  int32_t type = 0;
  int32_t number = 0;

  bool operator==(const DlDevice&) const = default;
};

// The arguments of a network's kernels in one run.
struct KernelCalls {
  // Addresses of each kernel's arguments, in the order of NetworkKernel::args.
  std::vector<std::vector<void*>> args;
  // Address of each buffer that belongs to the caller, or of the device's memory that is used in
  // its place. Null for other buffers. Equal addresses here mean that all arguments are equal.
  std::vector<void*> callers;
};

// The time of a kernel in a run, in seconds since the run's first kernel began.
struct KernelSpan {
  double begin_s = 0, end_s = 0;
};

enum class CopyPath : uint8_t {
  // From memory that only the host reaches.
  kToDevice,
  // Between memory that the device reaches.
  kOnDevice,
  // To memory that only the host reaches.
  kFromDevice,
};

class NetworkDevice {
 public:
  virtual ~NetworkDevice() = default;

  // Number among the devices of its kind.
  virtual int number() const { return 0; }
  // Makes the device the calling thread's own.
  virtual void Enter() {}
  // The thread has the device of before Enter again.
  virtual void Leave() {}

  // Alignment in bytes of the memory that Allocate returns.
  virtual int64_t alignment_bytes() const = 0;
  // Returns at least 1 byte of the device's memory. ResourceExhausted names the purpose, for
  // instance "constants".
  virtual StatusOr<void*> Allocate(int64_t bytes, std::string_view purpose) = 0;
  virtual void Free(void* memory, int64_t bytes) = 0;
  // Returns whether kernels can use the caller's memory at `pointer`. InvalidArgument if not even
  // copies can; the message names the tensor.
  virtual StatusOr<bool> Reaches(const void* pointer, std::string_view tensor) const = 0;
  // Copies at least 1 byte.
  virtual Status Copy(void* to, const void* from, int64_t bytes, CopyPath path) = 0;

  // Loads a binary of the network. Called for each, in order.
  virtual Status LoadBinary(std::string_view binary) = 0;
  // Finds a kernel in its binary. Called for each kernel in order, after all binaries. The error
  // names the kernel, and says what does not fit the device.
  virtual Status LoadKernel(const NetworkKernel& kernel) = 0;
  // Called once, when constants and arena are in their places. Other arguments are still null.
  virtual Status Prepare(const KernelCalls&) { return OkStatus(); }
  // Returns true if the device has several ways to launch the network, and will choose by running
  // it. Choose is then called once after Prepare, with inputs of zeros.
  virtual bool wants_trial() const { return false; }
  virtual Status Choose(const KernelCalls&) { return OkStatus(); }

  // Begins a run: the copies and launches that follow go into a stream of the caller's, or into the
  // device's own if there is none. Only kinds with streams are given one.
  virtual Status BeginRun(std::optional<void*>) { return OkStatus(); }
  // Ends a run in a stream of the caller's, for which nothing waits. Called after each BeginRun
  // with such a stream that succeeded, also if a copy or launch of the run failed. `shares_memory`
  // says that the run uses memory of the device that other runs use, too, so that these must wait
  // for it.
  virtual Status EndQueuedRun(bool /*shares_memory*/) { return OkStatus(); }
  // Waits for the runs in callers' streams. Called before memory is freed.
  virtual void WaitForQueuedRuns() {}

  // Launches all kernels.
  virtual Status LaunchAll(const KernelCalls& calls) = 0;
  // Waits for all copies and launches. The error is the first of theirs, and says what was waited
  // for: "run the network".
  virtual Status Synchronize(std::string_view what) = 0;

  // The functions below are as those of Executor, and return when the runs are over.
  //
  // Returns the seconds of all runs together.
  virtual StatusOr<double> TimeRuns(const KernelCalls& calls, int64_t number) = 0;
  virtual StatusOr<std::vector<double>> TimeKernels(const KernelCalls& calls, int64_t number) = 0;
  virtual StatusOr<std::vector<double>> TimeKernelsInRuns(const KernelCalls& calls,
                                                          int64_t number) = 0;
  virtual StatusOr<std::vector<KernelSpan>> TraceRun(const KernelCalls& calls) = 0;
};

// The calling thread may use the device as long as this object lives.
class DeviceScope {
 public:
  explicit DeviceScope(NetworkDevice& device) : device_(device) { device_.Enter(); }
  ~DeviceScope() { device_.Leave(); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  NetworkDevice& device_;
};

// Owns a block of a device's memory. The device outlives it, and is entered when it is destroyed.
class DeviceMemory {
 public:
  // 0 bytes are no memory.
  static StatusOr<DeviceMemory> Allocate(NetworkDevice& device, int64_t bytes,
                                         std::string_view purpose) {
    DeviceMemory memory;
    if (bytes == 0) return memory;
    KILN_ASSIGN_OR_RETURN(void* data, device.Allocate(bytes, purpose));
    memory.device_ = &device;
    memory.data_ = static_cast<std::byte*>(data);
    memory.bytes_ = bytes;
    return memory;
  }
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceMemory() { Free(); }

  void Free() {
    if (data_ != nullptr) device_->Free(data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
  }

  // Address on the device.
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  NetworkDevice* device_ = nullptr;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace kiln::runtime
