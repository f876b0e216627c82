// A sum of regression trees over rows of floats. Training makes it, and prediction reads it.
//
// A value, immutable except for Add, so any number of threads may predict. Rows must be finite; a
// NaN counts as larger than everything. Takes about 10 us for 64 rows and 100 trees of 10 levels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "costmodel/column_importance.h"

namespace kiln::costmodel {

// One tree as arrays over its nodes; node 0 is the root. A row goes left if row[column] <
// threshold.
struct Tree {
  std::vector<int32_t> left, right;  // -1: a leaf
  std::vector<int32_t> column;
  std::vector<float> threshold;  // at a leaf: its value
  // The decrease of the loss by the split at the node, 0 at a leaf. Empty if not known, which
  // counts as 0.
  std::vector<float> gain = {};
};

class Forest {
 public:
  Forest() = default;
  explicit Forest(int columns) : columns_(columns) {}

  int columns() const { return columns_; }
  int trees() const { return static_cast<int>(roots_.size()); }

  // Refuses a tree that is no tree over these columns.
  Status Add(const Tree& tree);

  // Returns the sums for rows of columns() floats each. Values are always added in the order of the
  // trees.
  std::vector<float> Predict(std::span<const float* const> rows) const;

  // Returns each column at which some tree splits, the largest gain first. Columns of equal gain
  // keep their order.
  std::vector<ColumnImportance> Importance() const;

  std::string Save() const;
  static StatusOr<Forest> Load(std::string_view bytes);

 private:
  // A node of 16 bytes. Children are neighbours. A leaf is its own left child, and every row goes
  // there, so a walk has as many steps as the tree has levels, and no branches.
  struct Node {
    float threshold;
    float value;
    int32_t left;
    int32_t column;  // index into used_
  };
  struct Root {
    int32_t node;
    int32_t levels;
  };

  int32_t UsedIndex(int32_t column);

  int columns_ = 0;
  std::vector<int32_t> used_;   // columns that some tree reads
  std::vector<int32_t> index_;  // index: column; its place in used_, or -1
  std::vector<Node> nodes_;
  std::vector<float> gains_;  // one for each node; kept apart, because a walk does not read gains
  std::vector<Root> roots_;
};

}  // namespace kiln::costmodel
