// Reads the types of a model's inputs from the file and from the user's options.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "frontend/onnx/onnx.pb.h"

namespace kiln::frontend {

struct InputType {
  std::string name;
  // TensorProto.DataType; 0: the input is no tensor.
  int element = 0;
  // "a sequence" or the like, if the input is no tensor.
  std::string kind = {};
  std::vector<int64_t> shape;
  // True: an extent is not known.
  bool is_open = false;
};

using InputShapes = std::map<std::string, std::vector<int64_t>>;

// Returns the types of `inputs`, in their order. Refuses different extents in file and options, and
// shapes for inputs that do not exist. If an extent is in neither, `open` becomes an error that
// lists all inputs.
StatusOr<std::vector<InputType>> ReadInputTypes(
    const std::vector<const ::onnx::ValueInfoProto*>& inputs, const InputShapes& shapes,
    Status& open);

}  // namespace kiln::frontend
