// What an embedded cluster, whose builder and runner share this machine, is told about it.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/target/target.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// The device of the runner that measures for the target: cpu, cuda or null.
StatusOr<std::string> DeviceOfTarget(std::string_view target);

// Makes CPU targets exact: their code may use all that this machine's CPU has.
StatusOr<target::Target> NameThisCpu(const target::Target& target);
// What is compiled here for a target that leaves its device open: a CPU target is made exact, a CUDA
// target without an architecture gets that of the first GPU. FailedPrecondition: there is none.
StatusOr<target::Target> NameThisDevice(const target::Target& target);
// The CPU targets of a job.
Status NameThisCpu(v1::JobSpec& spec);

}  // namespace kiln::client
