// Makes the specification of a job from what a user says: an operator, texts, a network or a
// kernel, and how it is searched. Any front end can call it: it reads the files that the
// description names, prints nothing and asks no service.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/jobs/workload_source.h"
#include "client/network.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// A job as a user describes it. A field that is "" or empty is not given, unless its comment says
// what it means.
struct JobDescription {
  // Arguments of the first operator.
  WorkloadArguments arguments;
  // Further text files, one task each.
  std::vector<std::string> more;
  // A file that lists the tasks (task_list.h), instead of operators.
  std::string tasks_path;
  // Algorithm variants of operators that have several; a line of a task list may have its own. "":
  // only direct for operators, and all for networks, whose weights are known.
  std::string variants;
  // Options of a network. Its name is given as the operator.
  NetworkArguments network;
  // Layout rewrite of a network (ParseLayoutRewrite). Operators have none.
  std::string layout_rewrite;
  // True: tasks of a network without sums are included.
  bool include_simple = false;
  // Weights of the tasks in order; a missing weight is 1.
  std::vector<double> weights;
  // "x=0.5:2".
  std::vector<std::string> input_ranges;
  // Parameters of the policy: "eps_greedy=0.1".
  std::vector<std::string> parameters;
  // Name of a template, or a file (template_source.h); "": none.
  std::string schedule_template;
  // Parameters of the cost model: "full_growth=0.2".
  std::vector<std::string> model_parameters;
  // Space of a kernel (kernel_source.h). The operator names the kernel's source.
  std::string kernel_space;
  // Never "".
  std::string target;
  // Device that measures; "": any.
  std::string device;
  std::string name;
  int32_t priority = 0;
  // Options that travel with the job as they are. The policy may be "": the first policy, or for a
  // template or a kernel the first one that searches templates. The cost model may be a file
  // (model_source.h).
  v1::TuneOptions options;
  // "3:null-store" (faults.h).
  std::vector<std::string> faults;
};

// Thread-safe. Errors are for the user: they name files with line and column, and options as the
// flags of `kiln tune`. InvalidArgument: the description contradicts itself, or a text is wrong.
StatusOr<v1::JobSpec> MakeJobSpec(const JobDescription& job);

}  // namespace kiln::client
