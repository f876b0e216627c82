#include "costmodel/forest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace kiln::costmodel {
namespace {

// Rows that are walked at once, so that their loads overlap. More rows would need too many
// registers.
constexpr int kLanes = 8;
// Rows whose used columns are copied together, so that they stay in the first-level cache.
constexpr int kBlock = 64;
constexpr int kMaxLevels = 64;
// A column takes memory as soon as a tree reads it, so their number is limited.
constexpr int32_t kMaxColumns = 1 << 20;
// A saved node has: left child, column, threshold or value, gain.
constexpr size_t kNodeBytes = 16;
constexpr float kLargest = std::numeric_limits<float>::max();

template <typename T>
void Append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
bool Take(std::string_view& bytes, T& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

}  // namespace

int32_t Forest::UsedIndex(int32_t column) {
  index_.resize(static_cast<size_t>(columns_), -1);
  int32_t& index = index_[column];
  if (index < 0) {
    index = static_cast<int32_t>(used_.size());
    used_.push_back(column);
  }
  return index;
}

Status Forest::Add(const Tree& tree) {
  const size_t n = tree.left.size();
  const bool has_gains = !tree.gain.empty();
  if (n == 0 || tree.right.size() != n || tree.column.size() != n || tree.threshold.size() != n ||
      (has_gains && tree.gain.size() != n)) {
    return InvalidArgument(
        "a tree with {} left and {} right children, {} columns, {} thresholds, {} gains", n,
        tree.right.size(), tree.column.size(), tree.threshold.size(), tree.gain.size());
  }
  // Visits nodes breadth first, so that children become neighbours.
  struct Visit {
    int32_t from, to, level;
  };
  const auto first = static_cast<int32_t>(nodes_.size());
  std::vector<Node> nodes(1);
  std::vector<float> gains(1);
  std::vector<Visit> visits{{0, first, 0}};
  int32_t levels = 0;
  for (size_t next = 0; next < visits.size(); ++next) {
    const auto [from, to, level] = visits[next];
    const float threshold = tree.threshold[from];
    if (!std::isfinite(threshold)) return InvalidArgument("node {} holds {}", from, threshold);
    if (tree.left[from] < 0) {
      nodes[to - first] = {std::numeric_limits<float>::infinity(), threshold, to, 0};
      continue;
    }
    for (const int32_t child : {tree.left[from], tree.right[from]}) {
      if (child <= 0 || static_cast<size_t>(child) >= n) {
        return InvalidArgument("node {} has child {}, expected one of 1 to {}", from, child, n - 1);
      }
    }
    if (tree.column[from] < 0 || tree.column[from] >= columns_) {
      return InvalidArgument("node {} reads column {} of {}", from, tree.column[from], columns_);
    }
    const float gain = has_gains ? tree.gain[from] : 0;
    if (!std::isfinite(gain)) return InvalidArgument("the split at node {} gains {}", from, gain);
    // A node with two parents, or a cycle, makes more visits than there are nodes.
    if (nodes.size() + 2 > n) return InvalidArgument("{} nodes do not form a tree", n);
    levels = std::max(levels, level + 1);
    if (levels > kMaxLevels) return InvalidArgument("a tree of more than {} levels", kMaxLevels);
    const auto left = static_cast<int32_t>(first + nodes.size());
    nodes[to - first] = {threshold, 0, left, tree.column[from]};
    gains[to - first] = gain;
    nodes.resize(nodes.size() + 2);
    gains.resize(nodes.size());
    visits.push_back({tree.left[from], left, level + 1});
    visits.push_back({tree.right[from], left + 1, level + 1});
  }
  for (Node& node : nodes) {
    if (std::isfinite(node.threshold)) node.column = UsedIndex(node.column);
  }
  nodes_.insert(nodes_.end(), nodes.begin(), nodes.end());
  gains_.insert(gains_.end(), gains.begin(), gains.end());
  roots_.push_back({first, levels});
  return OkStatus();
}

std::vector<float> Forest::Predict(std::span<const float* const> rows) const {
  std::vector<float> sums(rows.size());
  // A leaf reads column 0 of its row, even if no tree reads a column.
  const size_t width = std::max<size_t>(used_.size(), 1);
  std::vector<float> block(kBlock * width);
  const Node* const nodes = nodes_.data();
  for (size_t start = 0; start < rows.size(); start += kBlock) {
    const size_t count = std::min<size_t>(kBlock, rows.size() - start);
    for (size_t r = 0; r < count; ++r) {
      for (size_t c = 0; c < used_.size(); ++c) {
        // Values stay below infinity, because a leaf compares with infinity.
        const float value = rows[start + r][used_[c]];
        block[r * width + c] = value < kLargest ? value : kLargest;
      }
    }
    float block_sums[kBlock] = {};
    for (const Root& root : roots_) {
      for (size_t r = 0; r < count; r += kLanes) {
        const float* row = block.data() + r * width;
        int32_t at[kLanes];
        std::fill_n(at, kLanes, root.node);
        for (int32_t level = 0; level < root.levels; ++level) {
#pragma GCC unroll 8
          for (int lane = 0; lane < kLanes; ++lane) {
            const Node& node = nodes[at[lane]];
            at[lane] = node.left +
                       static_cast<int32_t>(!(row[lane * width + node.column] < node.threshold));
          }
        }
        for (int lane = 0; lane < kLanes; ++lane) block_sums[r + lane] += nodes[at[lane]].value;
      }
    }
    std::copy_n(block_sums, count, sums.begin() + static_cast<ptrdiff_t>(start));
  }
  return sums;
}

std::vector<ColumnImportance> Forest::Importance() const {
  std::vector<ColumnImportance> columns(used_.size());
  for (size_t c = 0; c < used_.size(); ++c) columns[c].column = used_[c];
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (!std::isfinite(nodes_[n].threshold)) continue;  // a leaf
    ColumnImportance& column = columns[static_cast<size_t>(nodes_[n].column)];
    ++column.splits;
    column.gain += gains_[n];
  }
  std::ranges::sort(columns, [](const ColumnImportance& a, const ColumnImportance& b) {
    return a.gain != b.gain ? a.gain > b.gain : a.column < b.column;
  });
  return columns;
}

std::string Forest::Save() const {
  std::string bytes;
  Append(bytes, static_cast<int32_t>(columns_));
  Append(bytes, static_cast<int32_t>(roots_.size()));
  for (size_t i = 0; i < roots_.size(); ++i) {
    const int32_t first = roots_[i].node;
    const int32_t end =
        i + 1 < roots_.size() ? roots_[i + 1].node : static_cast<int32_t>(nodes_.size());
    Append(bytes, end - first);
    for (int32_t n = first; n < end; ++n) {
      const Node& node = nodes_[n];
      const bool leaf = node.left == n;
      Append(bytes, leaf ? int32_t{-1} : node.left - first);
      Append(bytes, leaf ? int32_t{0} : used_[node.column]);
      Append(bytes, leaf ? node.value : node.threshold);
      Append(bytes, gains_[n]);
    }
  }
  return bytes;
}

StatusOr<Forest> Forest::Load(std::string_view bytes) {
  const auto cut = [] { return DataLoss("the trees end too early"); };
  int32_t columns = 0, trees = 0;
  if (!Take(bytes, columns) || !Take(bytes, trees)) return cut();
  if (columns < 0 || columns > kMaxColumns || trees < 0) {
    return DataLoss("{} columns, expected 0 to {}, and {} trees", columns, kMaxColumns, trees);
  }
  Forest forest(columns);
  for (int32_t i = 0; i < trees; ++i) {
    int32_t size = 0;
    if (!Take(bytes, size)) return cut();
    if (size < 0 || static_cast<size_t>(size) > bytes.size() / kNodeBytes) return cut();
    Tree tree;
    for (int32_t n = 0; n < size; ++n) {
      int32_t left = 0, column = 0;
      float threshold = 0, gain = 0;
      if (!Take(bytes, left) || !Take(bytes, column) || !Take(bytes, threshold) ||
          !Take(bytes, gain)) {
        return cut();
      }
      if (left >= size) return DataLoss("node {} of {} has child {}", n, size, left);
      tree.left.push_back(left);
      tree.right.push_back(left < 0 ? -1 : left + 1);
      tree.column.push_back(column);
      tree.threshold.push_back(threshold);
      tree.gain.push_back(gain);
    }
    KILN_RETURN_IF_ERROR(forest.Add(tree));
  }
  if (!bytes.empty()) return DataLoss("{} bytes after the last tree", bytes.size());
  return forest;
}

}  // namespace kiln::costmodel
