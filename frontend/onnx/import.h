// Imports models of ONNX files (operator sets 7 to 23) as graphs.
//
// Shapes are static in Kiln. Shapes of inputs must be given if the file leaves them open; all
// others follow from Kiln's own operators. Values that depend only on constants and shapes are
// computed while the model is read. Weights are not copied. Values have the names of the outputs of
// the model's nodes; a node's name becomes its origin.
//
// Errors. Unimplemented: the model is valid, and Kiln lacks something; one message lists
// everything. Any other error: the model or the options are invalid; one sentence names the node.
// Any bytes may be read.
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
  // Shapes of inputs by name (--input name=1,3,224,224).
  std::map<std::string, std::vector<int64_t>> input_shapes = {};
  // Inputs that always have the same elements, by name: they become constants. Examples are inputs
  // for axes, extents and lengths. They may be without elements.
  std::map<std::string, ir::NDArray> input_values = {};
};

// Reads the file, and the files beside it that have its weights.
StatusOr<graph::Graph> ImportOnnx(const std::string& path, const ImportOptions& options = {});

// Reads a model in memory. Weights that are in files are looked for in `folder`.
StatusOr<graph::Graph> ImportOnnxModel(std::string_view bytes, const std::string& folder,
                                       const ImportOptions& options = {});

}  // namespace kiln::frontend
