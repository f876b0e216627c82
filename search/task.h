// What a search works on.
#pragma once

#include <stop_token>
#include <string>

#include "compiler/dag/access_analysis.h"
#include "compiler/dag/dag.h"
#include "compiler/target/target.h"

namespace kiln::search {

// Immutable; shared by all that work on the task.
struct Task {
  Task(dag::DagPtr d, target::Target t, target::HardwareParams h, std::string key)
      : dag(std::move(d)),
        target(std::move(t)),
        hardware(target::FillHardware(target, h)),
        workload_key(std::move(key)) {}

  dag::DagPtr dag;
  target::Target target;
  target::HardwareParams hardware;  // of the measured device
  std::string workload_key;
  // Requested: work on the task ends soon, with Cancelled where it has a status.
  std::stop_token stop = {};
};

}  // namespace kiln::search
