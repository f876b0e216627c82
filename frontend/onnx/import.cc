#include "frontend/onnx/import.h"

#include <filesystem>

#include "frontend/onnx/importer.h"
#include "frontend/onnx/model_file.h"

namespace kiln::frontend {

StatusOr<graph::Graph> ImportOnnx(const std::string& path, const ImportOptions& options) {
  KILN_ASSIGN_OR_RETURN(::onnx::ModelProto model, ReadModelFile(path));
  const std::string folder = std::filesystem::path(path).parent_path().string();
  StatusOr<graph::Graph> graph = Importer(model, folder, options).Import();
  if (!graph.ok()) return Annotate(graph.status(), path);
  return graph;
}

StatusOr<graph::Graph> ImportOnnxModel(std::string_view bytes, const std::string& folder,
                                       const ImportOptions& options) {
  KILN_ASSIGN_OR_RETURN(::onnx::ModelProto model, ParseModel(bytes));
  return Importer(model, folder, options).Import();
}

}  // namespace kiln::frontend
