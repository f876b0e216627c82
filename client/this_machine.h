// Facts about this machine for an embedded cluster, whose builder and runner run on it.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/target/target.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// Returns the device of the runner that measures for the target: cpu, cuda or null.
StatusOr<std::string> DeviceOfTarget(std::string_view target);

// Makes a CPU target exact: its code may use all features of this machine's CPU.
StatusOr<target::Target> NameThisCpu(const target::Target& target);
// Returns the target that is compiled here. A CPU target is made exact. A CUDA target without an
// architecture gets that of the first GPU. FailedPrecondition: there is no GPU.
StatusOr<target::Target> NameThisDevice(const target::Target& target);
// Makes the CPU targets of a job exact.
Status NameThisCpu(v1::JobSpec& spec);

}  // namespace kiln::client
