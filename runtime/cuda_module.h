// Cubins that are loaded on a GPU. Launches of their kernels are checked.
//
// The driver does not check its arguments, such as a module's size or the number of a kernel's
// parameters. So everything is checked here, once. The GPU's context must be current wherever these
// objects are used or destroyed.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/arrays/tensor_map.h"
#include "base/status.h"
#include "runtime/cuda_driver.h"
#include "runtime/cuda_gpus.h"

namespace kiln::runtime {

struct CudaLaunchShape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned dynamic_shared_bytes = 0;
  // Blocks of a cluster along x, as the kernel was compiled for; 0 or 1: no clusters.
  unsigned cluster = 0;
};

// Valid as long as its module.
struct CudaLaunch {
  std::string symbol;
  CuFunction function = nullptr;
  CudaLaunchShape shape = {};
};

class CudaModule {
 public:
  // InvalidArgument names what the GPU does not accept. `driver` and `gpu` outlive the module.
  static StatusOr<std::unique_ptr<CudaModule>> Load(const CudaDriver& driver, const CudaGpu& gpu,
                                                    std::string_view cubin);
  ~CudaModule();
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  // Prepares the launch of a kernel with parameters of these sizes in bytes; a pointer has 8.
  // Allows the kernel the shared memory that it needs. The error is "kernel 'f': ..." if the kernel
  // is not there or does not fit the GPU.
  StatusOr<CudaLaunch> Prepare(const std::string& symbol, const CudaLaunchShape& shape,
                               std::span<const size_t> parameter_bytes) const;

 private:
  CudaModule(const CudaDriver& driver, const CudaGpu& gpu) : driver_(driver), gpu_(gpu) {}

  const CudaDriver& driver_;
  const CudaGpu& gpu_;
  CuModule module_ = nullptr;
};

enum class LaunchOrder : uint8_t {
  // The kernel starts when the work before it in the stream has ended.
  kAfterPrevious,
  // The kernel may start earlier, and itself waits for the kernel before it in the stream. The work
  // before it must be a kernel. Drivers that cannot do that launch it as kAfterPrevious.
  kWaitsItself,
};

// Returns the parameter that a kernel takes for `map`, whose array begins at `begin`.
// InvalidArgument if the map is not valid, FailedPrecondition if the driver knows no tensor maps.
// Takes some hundred nanoseconds.
StatusOr<CuTensorMap> EncodeTensorMap(const CudaDriver& driver, const TensorMap& map,
                                      CuPointer begin);

// A range of the GPU's memory.
struct CudaMemory {
  CuPointer begin = 0;
  size_t bytes = 0;
};

struct LaunchOptions {
  LaunchOrder order = LaunchOrder::kAfterPrevious;
  // The data of this range that the kernel reads is the first to leave the L2 cache. Drivers that
  // cannot do that treat it like other data. At most kCuMaxAccessPolicyWindowBytes of the GPU.
  CudaMemory streamed = {};
};

// Queues the launch once. `parameters` has the address of each pointer or number that the kernel
// takes.
Status Launch(const CudaDriver& driver, const CudaLaunch& launch, CuStream stream,
              void** parameters, const LaunchOptions& options = {});

// Returns OK if the bytes are a whole ELF file for a GPU.
Status CheckCubin(std::string_view bytes);

}  // namespace kiln::runtime
