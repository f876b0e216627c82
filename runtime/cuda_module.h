// Cubins on a GPU: loaded, and their kernels checked against what they are launched with.
//
// The driver trusts what it is given: a module's size, the number of a kernel's parameters. So all
// of it is checked here, once. The GPU's context is current wherever these are used or destroyed.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/tensor_map.h"
#include "runtime/cuda_driver.h"
#include "runtime/cuda_gpus.h"

namespace kiln::runtime {

struct CudaLaunchShape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned dynamic_shared_bytes = 0;
  unsigned cluster = 0;  // blocks of one, along x, as the kernel was compiled for; 0 or 1: none
};

// Valid as long as its module.
struct CudaLaunch {
  std::string symbol;
  CuFunction function = nullptr;
  CudaLaunchShape shape = {};
};

class CudaModule {
 public:
  // InvalidArgument names what the GPU does not take. `driver` and `gpu` outlive the module.
  static StatusOr<std::unique_ptr<CudaModule>> Load(const CudaDriver& driver, const CudaGpu& gpu,
                                                    std::string_view cubin);
  ~CudaModule();
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  // The kernel takes parameters of these sizes in bytes; a pointer has 8. Allows it the shared
  // memory that it wants. "kernel 'f': ..." when it is not there or does not fit the GPU.
  StatusOr<CudaLaunch> Prepare(const std::string& symbol, const CudaLaunchShape& shape,
                               std::span<const size_t> parameter_bytes) const;

 private:
  CudaModule(const CudaDriver& driver, const CudaGpu& gpu) : driver_(driver), gpu_(gpu) {}

  const CudaDriver& driver_;
  const CudaGpu& gpu_;
  CuModule module_ = nullptr;
};

enum class LaunchOrder : uint8_t {
  kAfterPrevious,  // starts when what is before it in the stream has ended
  // May start earlier: the kernel itself waits for the one before it in the stream, which must be a
  // kernel. Drivers that can't do that launch it as the other.
  kWaitsItself,
};

// The parameter that a kernel takes for `map`, whose array begins at `begin`.
// InvalidArgument where the map is none, FailedPrecondition where the driver knows
// no such maps. Some hundred nanoseconds.
StatusOr<CuTensorMap> EncodeTensorMap(const CudaDriver& driver, const TensorMap& map,
                                      CuPointer begin);

// Memory of the GPU.
struct CudaMemory {
  CuPointer begin = 0;
  size_t bytes = 0;
};

struct LaunchOptions {
  LaunchOrder order = LaunchOrder::kAfterPrevious;
  // What the kernel reads of it is the first that leaves the L2 cache. Drivers that can't do that
  // treat it as everything else. At most kCuMaxAccessPolicyWindowBytes of the GPU.
  CudaMemory streamed = {};
};

// Queues it once. `parameters`: the address of each pointer or number that it takes.
Status Launch(const CudaDriver& driver, const CudaLaunch& launch, CuStream stream,
              void** parameters, const LaunchOptions& options = {});

// Whether these bytes are a whole ELF file for a GPU.
Status CheckCubin(std::string_view bytes);

}  // namespace kiln::runtime
