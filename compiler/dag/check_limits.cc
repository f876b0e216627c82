#include "compiler/dag/check_limits.h"

#include "compiler/dag/body_size.h"
#include "compiler/dag/limits.h"

namespace kiln::dag {
namespace {

Status CheckName(std::string_view what, std::string_view name) {
  if (name.size() <= kMaxNameBytes) return OkStatus();
  return InvalidArgument("the name of {}, {}..., has {} bytes, expected at most {}", what,
                         name.substr(0, 24), name.size(), kMaxNameBytes);
}

Status CheckBodySize(std::string_view name, const std::vector<ir::Expr>& bodies) {
  const BodySize size = SizeOf(bodies);
  const double nodes = size.tree.With(1);
  if (nodes > kMaxBodyNodes) {
    return InvalidArgument(
        "{}: its body has {:.0f} operands and operations, expected at most {:.0f}; give parts of "
        "it operators of their own",
        name, nodes, kMaxBodyNodes);
  }
  if (size.height > kMaxBodyHeight) {
    return InvalidArgument("{}: its body nests {} operations deep, expected at most {}", name,
                           size.height, kMaxBodyHeight);
  }
  return OkStatus();
}

}  // namespace

Status CheckTextBytes(std::string_view what, std::string_view text) {
  if (text.size() <= kMaxTextBytes) return OkStatus();
  return InvalidArgument("{} has {} bytes, expected at most {}", what, text.size(), kMaxTextBytes);
}

Status CheckOperatorCount(size_t operators) {
  if (operators <= static_cast<size_t>(kMaxOperators)) return OkStatus();
  return InvalidArgument("the computation has more than {} operators; cut it into several",
                         kMaxOperators);
}

Status CheckOperatorLimits(std::string_view name, std::span<const Axis> axes,
                           std::span<const Axis> reduce_axes, const std::vector<ir::Expr>& bodies) {
  KILN_RETURN_IF_ERROR(CheckName("an operator", name));
  if (axes.size() + reduce_axes.size() > static_cast<size_t>(kMaxAxes)) {
    return InvalidArgument("{} has {} axes, expected at most {}", name,
                           axes.size() + reduce_axes.size(), kMaxAxes);
  }
  for (const std::span<const Axis> list : {axes, reduce_axes}) {
    for (const Axis& axis : list) KILN_RETURN_IF_ERROR(CheckName("an axis", axis.name));
  }
  return CheckBodySize(name, bodies);
}

}  // namespace kiln::dag
