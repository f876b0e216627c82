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
  int element = 0;             // TensorProto.DataType; 0: it is no tensor
  std::string kind = {};       // "a sequence", when it is no tensor
  std::vector<int64_t> shape;
};

using InputShapes = std::map<std::string, std::vector<int64_t>>;

// Of `inputs`, in their order. Refuses extents that neither says, in one message that lists all
// inputs; extents that both say and that differ; shapes of inputs that there are not.
StatusOr<std::vector<InputType>> ReadInputTypes(
    const std::vector<const ::onnx::ValueInfoProto*>& inputs, const InputShapes& shapes);

}  // namespace kiln::frontend
