// A small job for tests.
#pragma once

#include <string>

#include "proto/scheduler.pb.h"

namespace kiln::scheduler {

inline v1::TaskSpec TestTask(int size = 64) {
  const std::string n = std::to_string(size);
  v1::TaskSpec task;
  task.set_dag("input A: float32[" + n + ", " + n + "]\n" +  //
               "input B: float32[" + n + ", " + n + "]\n" +  //
               "C[i: " + n + ", j: " + n + "] = sum(k: " + n + ") A[i, k] * B[k, j]\n");
  task.set_target("null");
  task.set_description("matmul");
  return task;
}

// Does the same work as TestTask(), with the factors of each product swapped.
inline v1::TaskSpec TestAlternative(uint32_t of, int size = 64) {
  v1::TaskSpec task = TestTask(size);
  std::string dag = task.dag();
  dag.replace(dag.find("A[i, k] * B[k, j]"), 17, "B[k, j] * A[i, k]");
  task.set_dag(dag);
  task.set_description("matmul, turned");
  task.set_variant("turned");
  task.set_preparation("p1 = nothing");
  task.set_alternative_of(of);
  return task;
}

inline v1::JobSpec TestJob(uint32_t trials) {
  v1::JobSpec spec;
  spec.set_user("ada");
  *spec.add_tasks() = TestTask();
  spec.mutable_options()->set_trials(trials);
  spec.mutable_options()->set_seed(7);
  spec.mutable_options()->set_policy("sketch.random");  // a quick policy
  return spec;
}

}  // namespace kiln::scheduler
