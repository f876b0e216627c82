// What an embedded cluster, whose builder and runner share this machine, is told about it.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// The device of the runner that measures for the target: cpu, cuda or null.
StatusOr<std::string> DeviceOfTarget(std::string_view target);

// Makes the job's CPU targets exact: their code may use all that this machine's CPU has.
Status NameThisCpu(v1::JobSpec& spec);

}  // namespace kiln::client
