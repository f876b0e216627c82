// What a search works on.
#pragma once

#include <stop_token>
#include <string>

#include "compiler/dag/access_analysis.h"
#include "compiler/dag/dag.h"
#include "compiler/target/target.h"
#include "device/device_model.h"

namespace kiln::search {

// Immutable; shared by all that work on the task.
struct Task {
  // What the device did not say of itself is what is usual for the target.
  Task(dag::DagPtr d, target::Target t, target::HardwareParams h, std::string key,
       device::DeviceModel model = {})
      : dag(std::move(d)),
        target(std::move(t)),
        hardware(target::FillHardware(target, h)),
        device(target.is_gpu() ? device::FilledGpu(std::move(model), target.GpuArch())
                               : std::move(model)),
        workload_key(std::move(key)) {}

  dag::DagPtr dag;
  target::Target target;
  target::HardwareParams hardware;  // of the measured device, as logs have them
  device::DeviceModel device;       // of a GPU; of a CPU as far as it is known
  std::string workload_key;
  // Requested: work on the task ends soon, with Cancelled where it has a status.
  std::stop_token stop = {};
};

}  // namespace kiln::search
