// A value while a model is read: a value of the graph, or one whose elements are known.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/constant.h"
#include "graph/graph.h"

namespace kiln::frontend {

struct Tensor {
  enum class State : uint8_t {
    // An optional input that is not given.
    kAbsent,
    // A result that an unsupported operator would have computed.
    kMissing,
    kValue,
  };
  State state = State::kAbsent;
  // Unlike values of the graph it may have extents of 0: shapes of scalars are empty lists, and
  // exporters compute with them. Such values never reach the graph.
  graph::TensorType type = {};
  // Set: these are its elements.
  graph::ConstantPtr constant = nullptr;
  // Not set for a known value that nothing in the graph reads yet.
  graph::ValueId id = graph::kAbsent;
  // Name of a constant, for the graph.
  std::string name = {};

  static Tensor Of(graph::ConstantPtr constant, std::string name = {}) {
    graph::TensorType type = constant->type();
    return {State::kValue, std::move(type), std::move(constant), graph::kAbsent, std::move(name)};
  }
  static Tensor Empty(graph::TensorType type) { return {State::kValue, std::move(type)}; }
  static Tensor Missing() { return {State::kMissing}; }

  bool exists() const { return state != State::kAbsent; }
  bool is_missing() const { return state == State::kMissing; }
  bool is_empty() const { return std::ranges::find(type.shape, 0) != type.shape.end(); }
  bool is_known() const { return state == State::kValue && (constant != nullptr || is_empty()); }

  ir::Type element() const { return type.type; }
  const std::vector<int64_t>& shape() const { return type.shape; }
  int rank() const { return type.rank(); }
  int64_t num_elements() const { return type.num_elements(); }
  // Returns the extent of an axis. A missing axis has the extent 1, as if the shape were padded.
  int64_t dim(int64_t axis) const {
    return axis >= 0 && axis < rank() ? type.shape[static_cast<size_t>(axis)] : 1;
  }
};

}  // namespace kiln::frontend
