// Words for jobs and trials of hand-written kernels and templates.
#pragma once

#include <string>
#include <string_view>

#include "proto/scheduler.pb.h"

namespace kiln::client {

// Returns "block_size_x=32 tile=4" for a candidate of a kernel; "" for others.
std::string KernelValues(std::string_view steps);

// Returns the configuration of a kernel's or template's record: "block_size_x=32 tile=4", "template
// conv2d_nchw_direct, config 5567092"; "" for others. The text is printable.
std::string ConfigurationOf(const v1::Record& record);

// Returns the name of the program with which a job's candidates are compared: "the unscheduled
// loops" or "the reference kernel".
std::string_view ReferenceName(const v1::TuneOptions& options);

}  // namespace kiln::client
