// The values between the kernels of a compiled network, as somebody else computes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/ir/ndarray.h"
#include "runtime/network_file.h"

namespace kiln::client {

// What the kernel computes. Refuses one whose text does not parse, or whose arguments are not those
// of its kernel.
StatusOr<dag::DagPtr> ComputationOf(const runtime::Network& network, size_t kernel);

// Kernels are gone through in their order. A value is kept no longer than a kernel or an output
// reads it. DAGs are those of ComputationOf.
class KernelValues {
 public:
  // `inputs`: of the network. The file must outlive this.
  KernelValues(const runtime::NetworkFile& file, std::span<const ir::NDArray> inputs);

  // One array per placeholder of the kernel's DAG, none packed.
  std::vector<ir::NDArray> InputsOf(size_t kernel, const dag::Dag& dag) const;
  // One array per output of it.
  void SetOutputsOf(size_t kernel, const dag::Dag& dag, std::span<const ir::NDArray> outputs);

  // Of the network, once all kernels are done.
  std::vector<ir::NDArray> Outputs() const;

 private:
  const runtime::Network& network() const { return file_.network(); }
  // Bytes of a buffer that has them.
  std::span<const std::byte> BytesOf(int32_t buffer) const;

  const runtime::NetworkFile& file_;
  std::map<int32_t, std::vector<std::byte>> bytes_;  // by buffer that is no view
  std::vector<size_t> last_reader_;                  // by buffer: a kernel; SIZE_MAX: an output
};

}  // namespace kiln::client
