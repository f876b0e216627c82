#include "scheduler/device_tasks.h"

#include <algorithm>

namespace kiln::scheduler {
namespace {

template <typename T, typename U>
void Take(T& parameter, U announced) {
  if (announced > 0) parameter = static_cast<T>(announced);
}

}  // namespace

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
                              runner.id(), runner.address(), runner.target(),
                              target::TargetKindName(asked.kind));
  }
  for (const auto& [name, value] : asked.options) device->options[name] = value;
  return *std::move(device);
}

target::HardwareParams HardwareOf(const target::Target& completed, const v1::WorkerState& runner) {
  const v1::HardwareParams& device = runner.hardware();
  target::HardwareParams hardware =
      target::DefaultHardware(completed, std::max(1, device.num_cores()));
  // The user may ask for fewer cores than there are.
  if (completed.Option("num-cores").empty()) Take(hardware.num_cores, device.num_cores());
  Take(hardware.vector_unit_bytes, device.vector_unit_bytes());
  Take(hardware.cache_line_bytes, device.cache_line_bytes());
  Take(hardware.max_shared_memory_per_block_bytes, device.max_shared_memory_per_block_bytes());
  Take(hardware.max_local_memory_per_block_bytes, device.max_local_memory_per_block_bytes());
  Take(hardware.max_threads_per_block, device.max_threads_per_block());
  Take(hardware.max_vthread_extent, device.max_vthread_extent());
  Take(hardware.warp_size, device.warp_size());
  return hardware;
}

StatusOr<std::vector<search::Task>> TasksOnDevice(const CheckedJob& job,
                                                  const v1::WorkerState& runner) {
  std::vector<search::Task> tasks;
  for (const CheckedTask& task : job.tasks) {
    KILN_ASSIGN_OR_RETURN(target::Target completed, CompleteTarget(task.target, runner));
    const target::HardwareParams hardware = HardwareOf(completed, runner);
    tasks.emplace_back(task.dag, std::move(completed), hardware, task.workload_key);
  }
  return tasks;
}

}  // namespace kiln::scheduler
