#include "compiler/lower/online_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "compiler/dag/index_limit.h"
#include "compiler/dag/unrounded.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/ir/traverse.h"

namespace kiln::lower {

using ir::Expr;
using ir::Stmt;

namespace {

// Returns true if the logit is finite whenever the scores are.
bool IsFinite(Expr logit, int scores) {
  bool finite = true;
  ir::Visit(logit, [&](Expr node) {
    switch (node->op) {
      case ir::Op::kFloat:
        finite &= std::isfinite(node->float_value);
        break;
      case ir::Op::kLoad:
        finite &= node->id == scores;
        break;
      case ir::Op::kCall:
        finite &= node->intrinsic() == ir::Intrinsic::kTanh;
        break;
      case ir::Op::kVar:
      case ir::Op::kAdd:
      case ir::Op::kSub:
      case ir::Op::kMul:
        break;
      case ir::Op::kDiv:
        finite &= node->arg(1)->op == ir::Op::kFloat && node->arg(1)->float_value != 0;
        break;
      default:
        finite = false;
    }
  });
  return finite;
}

}  // namespace

// ---- tables

ir::Program& OnlineBuilder::MakeProgram() {
  program_.pool = std::make_shared<ir::ExprPool>();
  return program_;
}

int32_t OnlineBuilder::NewStage(std::string_view name) {
  program_.stages.push_back({stage_names_.Unique(name)});
  return static_cast<int32_t>(program_.stages.size()) - 1;
}

int32_t OnlineBuilder::NewBuffer(std::string_view name, ir::Type type, std::vector<int64_t> shape,
                                 ir::Scope scope) {
  return ir::AddBuffer(program_, {Identifier(name), type, std::move(shape), scope, 0});
}

SharedTile OnlineBuilder::NewTile(Expr load, TileAxis a, TileAxis b) {
  const dag::Operator& op = dag_.op(load->id);
  SharedTile tile = MakeSharedTile(load, op.shape(), a, b);
  tile.is_swizzled = is_warpgroup();
  tile.slot = NewBuffer(op.name() + "_shared", op.type(), ShapeOf(tile), ir::Scope::kShared);
  tile.stage = NewStage(op.name() + "_shared");
  program_.stages[static_cast<size_t>(tile.stage)].hints[ir::Hint::kSwizzle] = tile.is_swizzled;
  return tile;
}

void OnlineBuilder::MakeBuffers() {
  slots_.assign(static_cast<size_t>(dag_.size()), -1);
  for (int s = 0; s < dag_.size(); ++s) NewStage(dag_.op(s).name());
  const std::vector<int64_t> limits = dag::IndexLimits(dag_);
  for (const dag::Tensor& t : dag_.arguments()) {
    const dag::Operator& op = dag_.op(t.op);
    const bool is_input = op.is_placeholder();
    slots_[static_cast<size_t>(t.op)] = NewBuffer(
        op.name(), op.type(), op.shape(), is_input ? ir::Scope::kInput : ir::Scope::kOutput);
    if (is_input && op.type().is_int())
      program_.buffers.back().index_limit = limits[static_cast<size_t>(t.op)];
  }
  if (is_split()) MakeSplitBuffers();
  const TileAxis row{chain_.row, block_rows(), extent(chain_.row)},
      key{chain_.key, tile_.keys, extent(chain_.key)},
      depth{chain_.depth, terms(), extent(chain_.depth)},
      column{chain_.column, value_groups() * kColumns, extent(chain_.column)};
  query_ = NewTile(chain_.query, row, depth);
  keys_ = NewTile(chain_.keys, key, depth);
  values_ = NewTile(chain_.values, key, column);

  const int64_t rows = rows_of_thread();
  scores_ = NewRegisters("scores", {rows, key_groups(), kNeighbours});
  highest_ = NewRegisters("highest", {rows});
  new_highest_ = NewRegisters("new_highest", {rows});
  factor_ = NewRegisters("factor", {rows});
  total_ = NewRegisters("total", {rows});
  sums_ = NewRegisters("sums", {rows, value_groups(), kNeighbours});
  const ir::Type type = chain_.weight->type;
  weights_ = NewBuffer("weights", type, {block_rows(), tile_.keys + 16 / type.bytes()},
                       ir::Scope::kShared);
  const std::vector<int64_t> of_threads = {block_rows() * tile_.parts, kThreadColumns};
  highest_of_threads_ =
      NewBuffer("highest_of_threads", ir::kFloat32, of_threads, ir::Scope::kShared);
  total_of_threads_ = NewBuffer("total_of_threads", ir::kFloat32, of_threads, ir::Scope::kShared);
  if (tile_.parts > 1) {
    const auto shared = [&](std::string_view name, std::vector<int64_t> shape) {
      return NewBuffer(name, ir::kFloat32, std::move(shape), ir::Scope::kShared);
    };
    highest_of_parts_ = shared("highest_of_parts", {block_rows(), tile_.parts});
    total_of_parts_ = shared("total_of_parts", {block_rows(), tile_.parts});
    // The padding puts the rows of threads into different banks.
    sums_of_parts_ =
        shared("sums_of_parts", {tile_.parts, block_rows(), value_groups() * kColumns + kColumns});
    part_factor_ = NewRegisters("part_factor", {rows, tile_.parts});
  }
  ir::Visit(chain_.logit, [&](Expr node) {
    has_inputs_in_logit_ |= node->op == ir::Op::kLoad && node->id != chain_.scores;
  });
  FindScale();
}

bool OnlineBuilder::HasUnit(Expr term) {
  const Expr zeros[] = {write_.Int(0), write_.Int(0)};
  const auto element = [&](int32_t slot) { return Expr{write_.Load(slot, zeros)}; };
  const bool is_score = term == chain_.score_term;
  const Parts parts =
      is_score ? Parts{{chain_.query, element(query_.slot)}, {chain_.keys, element(keys_.slot)}}
               : Parts{{chain_.weight, element(weights_)}, {chain_.values, element(values_.slot)}};
  const auto factors = instructions::MatrixFactorsOf(Written(term, parts));
  return factors.has_value() && factors->unit->sum == ir::kFloat32 &&
         (!is_warpgroup() || factors->unit->factor.bits == 16);
}

// The weights are a first factor in registers, which must have 16 bits.
Status OnlineBuilder::CheckWarpgroups() {
  constexpr int64_t kMaxColumns = 256;
  const auto refuse = [&](std::string_view why) {
    return FailedPrecondition(
        "stage {} ({}): the units of four warps can't compute its online softmax: {}",
        chain_.output, dag_.op(chain_.output).name(), why);
  };
  if (!HasUnit(chain_.score_term) || !HasUnit(chain_.value_term))
    return refuse("expected two products of 16-bit floats, summed in float32");
  const int64_t columns = value_groups() * kColumns;
  if (columns > kMaxColumns)
    return refuse(fmt::format("{} columns, expected at most {}", columns, kMaxColumns));
  return OkStatus();
}

Status OnlineBuilder::SetMatrixUnits() {
  if (tile_.matrix_unit == ir::MatrixUnitScope::kNone) return OkStatus();
  if (is_warpgroup()) KILN_RETURN_IF_ERROR(CheckWarpgroups());
  bool any = false;
  for (const auto& [op, term] : {std::pair{chain_.scores, chain_.score_term},
                                 std::pair{chain_.weighted, chain_.value_term}}) {
    if (!HasUnit(term)) continue;
    program_.stages[static_cast<size_t>(op)].hints[ir::Hint::kMatrixUnit] =
        static_cast<int32_t>(tile_.matrix_unit);
    any = true;
  }
  if (any) return OkStatus();
  return FailedPrecondition(
      "stage {} ({}): no matrix unit multiplies the factors of its online softmax; expected 16-bit "
      "floats summed in float32",
      chain_.output, dag_.op(chain_.output).name());
}

int64_t OnlineBuilder::blocks() const {
  int64_t problems = 1;
  for (const int32_t var : chain_.batch) problems *= extent(var);
  return problems * row_tiles();
}

// ---- expressions

Expr OnlineBuilder::Written(Expr e, const Parts& parts) {
  if (const auto part = parts.find(e); part != parts.end()) return part->second;
  if (e->op == ir::Op::kVar) {
    const Expr value = vars_[static_cast<size_t>(e->id)];
    KILN_CHECK(value != nullptr, "variable {} has no value here", e->id);
    return value;
  }
  if (e->num_args == 0) return pool().WithArgs(e, {});
  std::vector<Expr> args;
  for (Expr arg : e->args()) args.push_back(Written(arg, parts));
  if (e->op == ir::Op::kLoad) return write_.Load(slots_[static_cast<size_t>(e->id)], args);
  return pool().WithArgs(e, args);
}

void OnlineBuilder::FindScale() {
  const Expr logit = chain_.seen_logit != nullptr ? chain_.seen_logit : chain_.logit;
  const int64_t last_part =
      (tile_.splits - 1) * key_tiles() * tile_.keys + (tile_.parts - 1) * keys_of_part();
  const bool has_every_part_keys =
      last_part == 0 || (!chain_.last_key && extent(chain_.key) > last_part);
  const bool is_finite = has_every_part_keys && IsFinite(logit, chain_.scores);
  is_fast_ = is_finite && chain_.weight->type.bits == 16;
  const auto scaled = dag::AsScaledLoad(logit);
  if (!is_fast_ || !scaled || scaled->load == logit || scaled->scale <= 0) return;
  scaled_ = logit;
  scale_ = scaled->scale;
}

Expr OnlineBuilder::Power(Expr logit, Expr highest) {
  const Expr factor = Float(scale_ * std::numbers::log2e);
  const Expr exponent = is_fast_
                            ? pool().Sub(pool().Mul(logit, factor), pool().Mul(highest, factor))
                            : pool().Mul(pool().Sub(logit, highest), factor);
  const Expr args[] = {exponent};
  return pool().Call(ir::Intrinsic::kExp2, args);
}

// The multiply-add of a power multiplies the lowest logit first, and the product must stay finite.
double OnlineBuilder::LowestLogit() const {
  constexpr double kLowest = std::numeric_limits<float>::lowest();
  return is_fast_ ? kLowest / (2 * std::max(1.0, scale_ * std::numbers::log2e)) : kLowest;
}

Expr OnlineBuilder::IsSeen() {
  if (tile_.is_cluster) return nullptr;
  Expr seen = nullptr;
  if (has_fewer_tiles()) seen = write_.Less(first_key_, extent(chain_.key));
  if (!chain_.last_key) return seen;
  // The block's last row sees the most keys.
  return write_.And(
      seen, write_.Less(first_key_, write_.Add(first_row_, block_rows() + *chain_.last_key)));
}

Expr OnlineBuilder::LastSeen() {
  const Expr last = write_.Int(key_tiles() - 1);
  if (!chain_.last_key) return last;
  const Expr of_block =
      write_.Div(write_.Add(first_row_, block_rows() + *chain_.last_key - 1), tile_.keys);
  return pool().Binary(ir::Op::kMin, of_block, last);
}

Expr OnlineBuilder::IsWhole() {
  Expr whole = nullptr;
  if (has_keys_beyond()) whole = write_.Less(first_key_, extent(chain_.key) - tile_.keys + 1);
  if (chain_.last_key) {
    // The block's first row sees the fewest keys.
    whole = write_.And(
        whole, write_.Less(first_key_, write_.Add(first_row_, *chain_.last_key - tile_.keys + 2)));
  }
  if (has_inputs_in_logit_ && extent(chain_.row) % block_rows() != 0) {
    whole = write_.And(whole, write_.Less(first_row_, extent(chain_.row) - block_rows() + 1));
  }
  return whole;
}

// ---- statements

Stmt OnlineBuilder::ForRows(absl::FunctionRef<Stmt(Expr)> body) {
  return write_.Loop("i", rows_of_thread(), body);
}

Stmt OnlineBuilder::ForTile(int64_t groups, ir::LoopKind innermost,
                            absl::FunctionRef<Stmt(Expr, Expr, Expr)> body) {
  return ForRows([&](Expr i) {
    return write_.Loop("group", groups, [&](Expr group) {
      return write_.Loop("side", kNeighbours, innermost,
                         [&](Expr side) { return body(i, group, side); });
    });
  });
}

Stmt OnlineBuilder::AddTerms(int32_t slot, int32_t stage, int64_t count, int64_t groups,
                             absl::FunctionRef<Expr(Expr, Expr, Expr, Expr)> term) {
  return write_.Loop("k", count, [&](Expr k) {
    return ForTile(groups, ir::LoopKind::kSerial, [&](Expr i, Expr group, Expr side) {
      return Set(slot, stage, {i, group, side},
                 pool().Add(At(slot, {i, group, side}), term(i, group, side, k)));
    });
  });
}

Stmt OnlineBuilder::OverRow(int32_t registers, int32_t of_threads, int32_t stage, ir::Op combine) {
  const Stmt tell = ForRows([&](Expr i) {
    return Set(of_threads, stage, {RowOfWarp(i), write_.Mod(Lane(), kThreadColumns)},
               At(registers, {i}));
  });
  const Stmt combined = ForRows([&](Expr i) {
    const auto of = [&](int64_t column) {
      return At(of_threads, {RowOfWarp(i), write_.Int(column)});
    };
    return Set(registers, stage, {i},
               pool().Binary(combine, pool().Binary(combine, of(0), of(1)),
                             pool().Binary(combine, of(2), of(3))));
  });
  return write_.Seq({tell, ir::MakeWarpBarrier(pool()), combined});
}

Stmt OnlineBuilder::Copy(const SharedTile& tile, bool is_async) {
  const auto base = [&](int32_t var) {
    return var == chain_.row ? first_row_ : var == chain_.key ? first_key_ : nullptr;
  };
  const auto value_of = [&](const TileAxis& axis, Expr number) {
    const Expr first = base(axis.var);
    return first == nullptr ? number : write_.Add(first, number);
  };
  const auto element = [&](Expr outer, Expr inner) {
    vars_[static_cast<size_t>(tile.outer.var)] = value_of(tile.outer, outer);
    vars_[static_cast<size_t>(tile.inner.var)] = value_of(tile.inner, inner);
    return Written(tile.load, {});
  };
  const auto inside = [&](Expr outer, Expr inner) -> Expr {
    Expr condition = nullptr;
    for (const auto& [axis, number] :
         {std::pair{tile.outer, outer}, std::pair{tile.inner, inner}}) {
      const bool is_beyond = axis.var == chain_.key && has_keys_beyond();
      if (axis.limit % axis.extent == 0 && !is_beyond) continue;
      condition = write_.And(condition, write_.Less(value_of(axis, number), axis.limit));
    }
    return condition;
  };
  return CopyTile(write_, tile, thread_, threads(), is_async && tile.may_be_async(), element,
                  inside, pool());
}

Expr OnlineBuilder::LoadOf(int op) const {
  Expr found = nullptr;
  for (const Expr root : {chain_.logit, chain_.result}) {
    ir::Visit(root, [&](Expr node) {
      if (node->op == ir::Op::kLoad && node->id == op) found = node;
    });
  }
  return found;
}

}  // namespace kiln::lower
