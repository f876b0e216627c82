// Checks the body of an operator: variables and loads exist, types fit, index arithmetic stays far
// from overflow (arith::kEndLimit), and no access can leave its input whatever the axes' values.
//
// Bounds come from interval analysis over linear forms (compiler/arith), made sharper by the
// conditions of kIf, kAnd and kOr around the access: `if(1 <= h && h < 15, A[h - 1], 0)` is
// accepted. kSelect evaluates both sides and therefore guards nothing. The analysis is
// conservative: it refuses accesses that it cannot prove. An index that is itself a load of an
// integer input (`A[index[i]]`) is trusted: whoever fills that input keeps its values inside
// (program.h: Buffer::index_limit).
//
// Pure functions; cost: a few microseconds for a convolution.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/arith/interval.h"
#include "compiler/ir/expr.h"

namespace kiln::dag {

// Returns the smallest range that the analysis can prove for an integer expression whose variable i
// lies in [0, extents[i]-1].
arith::Interval RangeOf(ir::Expr e, std::span<const int64_t> extents);

// Names for error messages. Empty functions give "input 2" and leave index expressions out.
struct BodyNames {
  std::function<std::string(int slot)> input;
  std::function<std::string(ir::Expr)> expr;
};

struct BodyError {
  // The node at fault.
  ir::Expr where;
  std::string message;
};

// `extents` are those of the spatial, then of the reduce axes.
std::optional<BodyError> CheckBody(ir::Expr body, std::span<const int64_t> extents,
                                   std::span<const ir::Type> input_types,
                                   std::span<const std::vector<int64_t>> input_shapes,
                                   const BodyNames& names = {});

}  // namespace kiln::dag
