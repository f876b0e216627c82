// The values between the kernels of a compiled network, computed by something other than the
// kernels.
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

// Returns the computation of the kernel. Refuses a text that does not parse, or whose arguments are
// not those of its kernel.
StatusOr<dag::DagPtr> ComputationOf(const runtime::Network& network, size_t kernel);

// Visit the kernels in their order. A value is kept until no further kernel or output reads it. The
// DAGs are those of ComputationOf.
class KernelValues {
 public:
  // `inputs` are those of the network. The file must outlive this.
  KernelValues(const runtime::NetworkFile& file, std::span<const ir::NDArray> inputs);

  // Returns one array per placeholder of the kernel's DAG, none packed.
  std::vector<ir::NDArray> InputsOf(size_t kernel, const dag::Dag& dag) const;
  // Takes one array per output of the kernel.
  void SetOutputsOf(size_t kernel, const dag::Dag& dag, std::span<const ir::NDArray> outputs);

  // Returns the outputs of the network, once all kernels are done.
  std::vector<ir::NDArray> Outputs() const;

 private:
  const runtime::Network& network() const { return file_.network(); }
  // Returns the bytes of a buffer that has some.
  std::span<const std::byte> BytesOf(int32_t buffer) const;

  const runtime::NetworkFile& file_;
  // Bytes by buffer, for buffers that are no views.
  std::map<int32_t, std::vector<std::byte>> bytes_;
  // Last kernel that reads a buffer, by buffer; SIZE_MAX for an output.
  std::vector<size_t> last_reader_;
};

}  // namespace kiln::client
