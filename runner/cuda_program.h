// A cubin and its launch plan, checked and loaded for CudaDevice to run.
//
// The driver does not check its arguments, so the whole plan is checked here, once per artifact.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "proto/trial.pb.h"
#include "runner/device.h"
#include "runtime/cuda_module.h"

namespace kiln::runner {

// Its context must be current wherever the program is used or destroyed.
class CudaProgram : public Program {
 public:
  // InvalidArgument names what the GPU does not accept. `driver` and `gpu` outlive the program.
  static StatusOr<std::unique_ptr<CudaProgram>> Load(const runtime::CudaDriver& driver,
                                                     const runtime::CudaGpu& gpu,
                                                     const v1::Artifact& artifact);

  // Queues all launches once. `args` are the arguments' addresses in the order of the plan.
  Status Launch(runtime::CuStream stream, std::span<runtime::CuPointer> args) const;

 private:
  struct PlannedLaunch {
    runtime::CudaLaunch launch;
    // The kernel's parameters in order: an index into the plan's arguments, or a number.
    struct Parameter {
      uint32_t arg = 0;
      // Bytes of the number; "": the parameter is the argument.
      std::string value = {};
    };
    std::vector<Parameter> parameters;
    // Parameters behind the others.
    std::vector<TensorMap> tensor_maps;
  };

  explicit CudaProgram(const runtime::CudaDriver& driver) : driver_(driver) {}
  StatusOr<PlannedLaunch> Prepare(const v1::KernelLaunch& from, const v1::LaunchPlan& plan) const;

  const runtime::CudaDriver& driver_;
  std::unique_ptr<runtime::CudaModule> module_;
  std::vector<PlannedLaunch> launches_;
};

}  // namespace kiln::runner
