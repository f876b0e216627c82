// Words for jobs and trials of kernels and templates that people wrote.
#pragma once

#include <string>
#include <string_view>

#include "proto/scheduler.pb.h"

namespace kiln::client {

// "block_size_x=32 tile=4" of a candidate that is one of a kernel; "" of others.
std::string KernelValues(std::string_view steps);

// Which configuration of a kernel or template a record is: "block_size_x=32 tile=4", "template
// conv2d_nchw_direct, config 5567092"; "" of others. Fit to be printed.
std::string ConfigurationOf(const v1::Record& record);

// What a job's candidates are compared with: "the unscheduled loops" or "the reference kernel".
std::string_view ReferenceName(const v1::TuneOptions& options);

}  // namespace kiln::client
