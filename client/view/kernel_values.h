// Words for jobs and trials of kernels that people wrote.
#pragma once

#include <string>
#include <string_view>

#include "proto/scheduler.pb.h"

namespace kiln::client {

// "block_size_x=32 tile=4" of a candidate that is one of a kernel; "" of others.
std::string KernelValues(std::string_view steps);

// What a job's candidates are compared with: "the unscheduled loops" or "the reference kernel".
std::string_view ReferenceName(const v1::TuneOptions& options);

}  // namespace kiln::client
