// What the analytic model takes a device for: the row that this scheduler keeps of it, or the
// built-in one, or one derived from the device's numbers; and jobs that make such rows.
#pragma once

#include <span>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "device/calibration.h"
#include "search/space/task.h"
#include "store/store.h"

namespace kiln::scheduler {

// Of a kind of device, by its name and capability. A row of the store that does not parse counts as
// none; the log says so.
StatusOr<device::KnownCalibration> FindCalibration(store::Store& store,
                                                   const device::DeviceModel& model);

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
