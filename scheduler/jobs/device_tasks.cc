#include "scheduler/jobs/device_tasks.h"

#include <algorithm>

#include "rpc/device_message.h"
#include "rpc/hardware_message.h"

namespace kiln::scheduler {

StatusOr<target::Target> CompleteTarget(const target::Target& asked,
                                        const v1::WorkerState& runner) {
  if (runner.target().empty()) return asked;
  StatusOr<target::Target> device = target::ParseTarget(runner.target());
  if (!device.ok()) {
    return FailedPrecondition("runner {} at {} announces the target '{}': {}", runner.id(),
                              runner.address(), runner.target(), Message(device.status()));
  }
  if (device->kind != asked.kind) {
    return FailedPrecondition("runner {} at {} announces the target '{}', expected one of kind {}",
                              runner.id(), runner.address(), runner.target(), asked.kind->name);
  }
  for (const auto& [name, value] : asked.options) device->options[name] = value;
  return *std::move(device);
}

target::HardwareParams HardwareOf(const target::Target& completed, const v1::WorkerState& runner) {
  target::HardwareParams device = HardwareParamsOf(runner.hardware());
  const int cores = std::max(1, device.num_cores);
  const target::HardwareParams assumed = target::DefaultHardware(completed, cores);
  // The user may ask for fewer cores than there are.
  if (!completed.Option("num-cores").empty()) device.num_cores = 0;
  // Two figures are no resources of the device but bounds of the search and numbers of the cost
  // model, so the user may ask for more as well.
  if (!completed.Option("cache_line_bytes").empty()) device.cache_line_bytes = 0;
  if (!completed.Option("max_vthread_extent").empty()) device.max_vthread_extent = 0;
  // The user may also ask for less of any other resource: the smaller figure counts for each one
  // that an option changes.
  const HardwareRow usual =
      HardwareRowOf(target::DefaultHardware(target::Target{.kind = completed.kind}, cores));
  const HardwareRow asked = HardwareRowOf(assumed);
  HardwareRow row = HardwareRowOf(device);
  for (size_t i = 0; i < row.size(); ++i) {
    if (asked[i] != usual[i] && row[i] > asked[i]) row[i] = asked[i];
  }
  return KnownOr(HardwareParamsOf(row), assumed);
}

StatusOr<std::vector<search::Task>> TasksOnDevice(const CheckedJob& job,
                                                  const v1::WorkerState& runner) {
  KILN_ASSIGN_OR_RETURN(const device::DeviceModel model, DeviceModelOf(runner));
  std::vector<search::Task> tasks;
  for (const CheckedTask& task : job.tasks) {
    KILN_ASSIGN_OR_RETURN(target::Target completed, CompleteTarget(task.target, runner));
    const target::HardwareParams hardware = HardwareOf(completed, runner);
    // Tasks are named by workload id: a model must not mistake two computations with the same key.
    tasks.emplace_back(task.dag, std::move(completed), hardware, task.workload_id, model);
  }
  return tasks;
}

}  // namespace kiln::scheduler
