#include "compiler/dag/count_points.h"

#include <algorithm>
#include <vector>

#include "compiler/arith/linear.h"
#include "compiler/ir/traverse.h"

namespace kiln::dag {
namespace {

constexpr double kMaxVisited = 1 << 18;

class Counter {
 public:
  Counter(std::span<const Axis> axes, std::span<const Axis> reduce_axes,
          std::span<const ir::Expr> conditions) {
    for (const Axis& axis : axes) extents_.push_back(axis.extent);
    for (const Axis& axis : reduce_axes) extents_.push_back(axis.extent);
    limits_.resize(extents_.size());
    is_read_.resize(extents_.size());
    for (const ir::Expr condition : conditions) {
      const auto var = static_cast<size_t>(condition->arg(0)->id);
      limits_[var] = {true, arith::Linearize(condition->arg(1))};
      for (const arith::Term& term : limits_[var].sum.terms)
        is_read_[static_cast<size_t>(term.atom->id)] = true;
    }
    point_.resize(extents_.size());
    double visited = 1;
    for (size_t i = 0; i < extents_.size(); ++i)
      if (is_read_[i]) visited *= static_cast<double>(extents_[i]);
    is_exact_ = visited <= kMaxVisited;
  }

  // Counts the points of the axes from `axis` on, at the current point of the earlier axes.
  double Count(size_t axis) {
    if (axis == extents_.size()) return 1;
    const double extent = ExtentAt(axis);
    if (!is_read_[axis]) return extent * Count(axis + 1);
    if (!is_exact_) {
      point_[axis] = std::max(extent - 1, 0.0) / 2;
      return extent * Count(axis + 1);
    }
    double count = 0;
    for (double i = 0; i < extent; ++i) {
      point_[axis] = i;
      count += Count(axis + 1);
    }
    return count;
  }

 private:
  struct Limit {
    bool is_set = false;
    arith::Linear sum = {};
  };

  double ExtentAt(size_t axis) const {
    const auto extent = static_cast<double>(extents_[axis]);
    if (!limits_[axis].is_set) return extent;
    auto value = static_cast<double>(limits_[axis].sum.constant);
    for (const arith::Term& term : limits_[axis].sum.terms) {
      value += static_cast<double>(term.coefficient) * point_[static_cast<size_t>(term.atom->id)];
    }
    return std::clamp(value, 0.0, extent);
  }

  std::vector<int64_t> extents_;
  std::vector<Limit> limits_;
  std::vector<bool> is_read_;
  std::vector<double> point_;
  bool is_exact_ = true;
};

}  // namespace

double CountPoints(std::span<const Axis> axes, std::span<const Axis> reduce_axes,
                   std::span<const ir::Expr> conditions) {
  return Counter(axes, reduce_axes, conditions).Count(0);
}

}  // namespace kiln::dag
