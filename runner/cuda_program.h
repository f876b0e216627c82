// A cubin and its launch plan, checked and loaded: what CudaDevice runs.
//
// The driver trusts what it is given: a module's size, the number of a kernel's parameters, the
// range of indices. So all of it is checked here, once per artifact.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "proto/trial.pb.h"
#include "runner/cuda_driver.h"
#include "runner/cuda_gpus.h"
#include "runner/device.h"

namespace kiln::runner {

struct CudaLaunch {
  CuFunction function = nullptr;
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned dynamic_shared_bytes = 0;
  std::vector<uint32_t> args;  // indices into the plan's
};

// Its context is current wherever it is used or destroyed.
class CudaProgram : public Program {
 public:
  // InvalidArgument names what the GPU does not take.
  static StatusOr<std::unique_ptr<CudaProgram>> Load(const CudaDriver& driver, const CudaGpu& gpu,
                                                     const v1::Artifact& artifact);
  ~CudaProgram() override;

  const std::vector<CudaLaunch>& launches() const { return launches_; }

  // Queues all launches once; `args` are the arguments' addresses in the order of the plan.
  Status Launch(CuStream stream, std::span<CuPointer> args) const;

 private:
  explicit CudaProgram(const CudaDriver& driver) : driver_(driver) {}

  const CudaDriver& driver_;
  CuModule module_ = nullptr;
  std::vector<CudaLaunch> launches_;
  std::vector<std::string> symbols_;  // of each launch, for messages
};

// Whether these bytes are a whole ELF file for a GPU.
Status CheckCubin(std::string_view bytes);

}  // namespace kiln::runner
