// Jobs that fit the analytic model's constants to their device, and what is said of those that a
// device has (costmodel/trained/device_constants.h).
#pragma once

#include <span>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "device/calibration.h"
#include "search/space/task.h"
#include "store/store.h"

namespace kiln::scheduler {

// For people: "NVIDIA H200 (capability 9.0, 132 multiprocessors, ...): the analytic model ...".
std::string DescribeCalibration(const device::DeviceModel& model,
                                const device::KnownCalibration& known);

// Fits the constants of the tasks' device to the job's own records and keeps them, unless they
// estimate workloads that were left out no better than the ones before. What was found, for people.
// FailedPrecondition with too few records that are right. Takes some 10 s for 400 records.
StatusOr<std::string> Calibrate(store::Store& store, const std::string& job_id,
                                std::span<const search::Task> tasks, int64_t now_s,
                                const std::stop_token& stop);

}  // namespace kiln::scheduler
