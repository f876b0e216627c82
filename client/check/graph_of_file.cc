#include "client/check/graph_of_file.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/arrays/packing.h"
#include "base/arrays/unpack.h"
#include "client/compile/network_arrays.h"
#include "graph/text.h"

namespace kiln::client {
namespace {

using graph::ConstantPtr;

StatusOr<ConstantPtr> ConstantOf(const std::shared_ptr<const runtime::NetworkFile>& file,
                                 const runtime::NetworkTensor& tensor) {
  const runtime::NetworkBuffer& buffer =
      file->network().buffers[static_cast<size_t>(tensor.buffer)];
  const std::span<const std::byte> bytes = file->constants().subspan(
      static_cast<size_t>(buffer.offset), static_cast<size_t>(buffer.bytes));
  KILN_ASSIGN_OR_RETURN(graph::TensorType type, TypeOf(tensor));
  if (!tensor.packing) return graph::Constant::FromMemory(std::move(type), file, bytes);
  ir::NDArray plain(type.type, type.shape);
  Unpack(*tensor.packing, type.type.bytes(), bytes, plain.mutable_bytes());
  // Packing again must give the same bytes: this compares the padding and repeated elements too.
  std::vector<std::byte> again(bytes.size());
  Pack(*tensor.packing, type.type.bytes(), plain.bytes(), again);
  if (!std::ranges::equal(bytes, again))
    return DataLoss("its constant {} is not packed as it is said to be", tensor.name);
  return graph::Constant::FromArray(std::move(plain));
}

}  // namespace

StatusOr<graph::Graph> GraphOfFile(const std::shared_ptr<const runtime::NetworkFile>& file) {
  // A name may stand for several constants: copies packed for several kernels.
  std::multimap<std::string, ConstantPtr> by_name;
  graph::ConstantsByDigest by_digest;
  for (const runtime::NetworkTensor& tensor : file->network().constants) {
    KILN_ASSIGN_OR_RETURN(ConstantPtr constant, ConstantOf(file, tensor));
    by_name.emplace(tensor.name, constant);
    by_digest[constant->digest()] = std::move(constant);
  }
  auto graph = graph::ParseGraph(file->network().graph_text, by_digest);
  if (!graph.ok())
    return DataLoss("its graph does not fit its constants: {}", Message(graph.status()));
  // The text spells these constants out, or gives their seed.
  for (const graph::Value& value : graph->values()) {
    if (value.constant == nullptr) continue;
    const auto [begin, end] = by_name.equal_range(value.name);
    for (auto it = begin; it != end; ++it) {
      if (!graph::Equal(*value.constant, *it->second))
        return DataLoss("its constant {} is not the one of its graph", value.name);
    }
  }
  return graph;
}

}  // namespace kiln::client
