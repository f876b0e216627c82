// Computations of long rows for tests of their sketches, and their tasks.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/dag/text.h"
#include "search/space/task.h"

namespace kiln::search {

inline std::string LogSoftmax(int64_t rows, int64_t columns, std::string_view type) {
  const std::string x = type == "float32" ? "x[i, k]" : "float32(x[i, k])";
  return fmt::format(
      "input x: {0}[{1}, {2}]\n"
      "m[i: {1}] = max(k: {2}) {3}\n"
      "s[i: {1}] = sum(k: {2}) exp({3} - m[i])\n"
      "y[i: {1}, k: {2}] = {0}({3} - m[i] - log(s[i]))\n",
      type, rows, columns, x);
}

inline dag::DagPtr Parse(const std::string& text) {
  const auto dag = dag::ParseDag(text);
  KILN_CHECK(dag.ok(), "{}\n{}", Message(dag.status()), text);
  return *dag;
}

// The task of an H200, whose blocks have 227 KB of shared memory.
inline Task TaskOf(const dag::DagPtr& dag) {
  const target::Target target = *target::ParseTarget("cuda -arch=sm_90");
  target::HardwareParams hardware = target::DefaultHardware(target, 1);
  hardware.max_shared_memory_per_block_bytes = 227 << 10;
  return Task(dag, target, hardware, "[]");
}

}  // namespace kiln::search
