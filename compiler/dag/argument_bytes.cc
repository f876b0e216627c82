#include "compiler/dag/argument_bytes.h"

namespace kiln::dag {

double ArgumentBytes(const Dag& dag) {
  double bytes = 0;
  for (const Tensor& argument : dag.arguments()) {
    double elements = 1;
    for (const int64_t extent : dag.shape(argument)) elements *= static_cast<double>(extent);
    bytes += elements * dag.type(argument).bytes();
  }
  return bytes;
}

}  // namespace kiln::dag
