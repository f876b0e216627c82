#include "client/check/graph_of_file.h"

#include <map>
#include <string>

#include "client/compile/network_arrays.h"
#include "graph/text.h"

namespace kiln::client {
namespace {

using graph::ConstantPtr;

StatusOr<ConstantPtr> ConstantOf(const std::shared_ptr<const runtime::NetworkFile>& file,
                                 const runtime::NetworkTensor& tensor) {
  const runtime::NetworkBuffer& buffer =
      file->network().buffers[static_cast<size_t>(tensor.buffer)];
  KILN_ASSIGN_OR_RETURN(graph::TensorType type, TypeOf(tensor));
  return graph::Constant::FromMemory(std::move(type), file,
                                     file->constants().subspan(static_cast<size_t>(buffer.offset),
                                                               static_cast<size_t>(buffer.bytes)));
}

}  // namespace

StatusOr<graph::Graph> GraphOfFile(const std::shared_ptr<const runtime::NetworkFile>& file) {
  std::map<std::string, ConstantPtr> by_name;
  graph::ConstantsByDigest by_digest;
  for (const runtime::NetworkTensor& tensor : file->network().constants) {
    KILN_ASSIGN_OR_RETURN(ConstantPtr constant, ConstantOf(file, tensor));
    by_name[tensor.name] = constant;
    by_digest[constant->digest()] = std::move(constant);
  }
  auto graph = graph::ParseGraph(file->network().graph_text, by_digest);
  if (!graph.ok())
    return DataLoss("its graph does not fit its constants: {}", Message(graph.status()));
  // Those that the text spells out, or says the seed of.
  for (const graph::Value& value : graph->values()) {
    const auto found = by_name.find(value.name);
    if (value.constant == nullptr || found == by_name.end()) continue;
    if (!graph::Equal(*value.constant, *found->second))
      return DataLoss("its constant {} is not the one of its graph", value.name);
  }
  return graph;
}

}  // namespace kiln::client
