// What a search works on.
#pragma once

#include <string>

#include "compiler/dag/access_analysis.h"
#include "compiler/dag/dag.h"
#include "compiler/target/target.h"

namespace kiln::search {

// What the measured device did not say of itself is taken from the target's defaults.
inline target::HardwareParams FillHardware(const target::Target& target,
                                           target::HardwareParams hardware) {
  if (!target.is_gpu()) return hardware;
  const target::HardwareParams defaults = target::DefaultHardware(target, 0);
  if (hardware.max_threads_per_block == 0 && hardware.warp_size == 0) return defaults;
  const auto fill = [](auto& field, auto otherwise) {
    if (field == 0) field = otherwise;
  };
  fill(hardware.max_shared_memory_per_block_bytes, defaults.max_shared_memory_per_block_bytes);
  fill(hardware.max_local_memory_per_block_bytes, defaults.max_local_memory_per_block_bytes);
  fill(hardware.max_threads_per_block, defaults.max_threads_per_block);
  fill(hardware.max_vthread_extent, defaults.max_vthread_extent);
  fill(hardware.warp_size, defaults.warp_size);
  return hardware;
}

// Immutable; shared by all that work on the task.
struct Task {
  Task(dag::DagPtr d, target::Target t, target::HardwareParams h, std::string key)
      : dag(std::move(d)),
        target(std::move(t)),
        hardware(FillHardware(target, h)),
        workload_key(std::move(key)) {}

  dag::DagPtr dag;
  target::Target target;
  target::HardwareParams hardware;  // of the measured device
  std::string workload_key;
};

}  // namespace kiln::search
