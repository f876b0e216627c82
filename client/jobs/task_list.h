// Reads the tasks of a job from the command line: an operator, several text files, or a list in a
// file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/jobs/workload_source.h"

namespace kiln::client {

struct TaskListEntry {
  WorkloadArguments arguments;
  // Uses in the network.
  double weight = 1;
  // kDirectVariants or another constant; "": not given.
  std::string variants = {};
  // "": none.
  std::string network = {};
};

// One task a line, "#" begins a comment:
//
//   # weight  operator, its arguments and epilogue; or a text file (relative to the list)
//   2   conv2d_nhwc 1,56,56,64,64,3,3,1,1 bias,relu variants=all
//   1   attention.te network=bert
//
// variants=direct|winograd|all and network=NAME may stand anywhere behind the operator.
// Errors name file and line.
StatusOr<std::vector<TaskListEntry>> LoadTaskList(const std::string& path);

// Like LoadTaskList, but from the list's text; text files are looked for in `folder`.
StatusOr<std::vector<TaskListEntry>> ParseTaskList(std::string_view text, const std::string& name,
                                                   const std::string& folder);

}  // namespace kiln::client
