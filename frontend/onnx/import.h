// Models of ONNX files (operator sets 7 to 23) as graphs.
//
// Shapes are static in Kiln: those of the inputs must be given where the file leaves them open, and
// all others follow from Kiln's own operators. What can be computed from constants and shapes is
// computed while the model is read. Weights are not copied. Values are called as the outputs of
// the model's nodes; nodes name theirs as their origin.
//
// Errors. Unimplemented: the model is fine, and Kiln lacks something: all of it in one message.
// Others: the model or the options are not fine; one sentence that names the node. Any bytes are
// fine as input.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/ir/ndarray.h"
#include "graph/graph.h"

namespace kiln::frontend {

struct ImportOptions {
  // Of inputs, by name (--input name=1,3,224,224).
  std::map<std::string, std::vector<int64_t>> input_shapes = {};
  // Inputs that always have the same elements, by name: they become constants. Such are those that
  // say axes, extents, lengths. May be without elements.
  std::map<std::string, ir::NDArray> input_values = {};
};

// Reads the file, and the files beside it that its weights are in.
StatusOr<graph::Graph> ImportOnnx(const std::string& path, const ImportOptions& options = {});

// Of a model in memory; weights that are in files are looked for in `folder`.
StatusOr<graph::Graph> ImportOnnxModel(std::string_view bytes, const std::string& folder,
                                       const ImportOptions& options = {});

}  // namespace kiln::frontend
