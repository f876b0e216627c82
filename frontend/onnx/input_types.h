// Types of a model's inputs, from the file and from what the user says.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "frontend/onnx/onnx.pb.h"

namespace kiln::frontend {

struct InputType {
  std::string name;
  int element = 0;        // TensorProto.DataType; 0: it is no tensor
  std::string kind = {};  // "a sequence", when it is no tensor
  std::vector<int64_t> shape;
  bool is_open = false;  // not all of its extents are known
};

using InputShapes = std::map<std::string, std::vector<int64_t>>;

// Of `inputs`, in their order. Refuses extents that both say and that differ, and shapes of inputs
// that there are not. Where neither says an extent, `open` becomes an error that lists all inputs.
StatusOr<std::vector<InputType>> ReadInputTypes(
    const std::vector<const ::onnx::ValueInfoProto*>& inputs, const InputShapes& shapes,
    Status& open);

}  // namespace kiln::frontend
