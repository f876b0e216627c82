#include "compiler/codegen/cuda/register_buffering.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/arith/linear.h"
#include "compiler/codegen/cuda/tile_order.h"
#include "compiler/codegen/cuda/unroll.h"
#include "compiler/ir/rewrite.h"
#include "compiler/ir/substitution.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::LoopKind;
using ir::Op;
using ir::Stmt;

// Stores that the steps of a tile may come to, and of all tiles of a kernel: what PlanUnrolling
// writes out of register tiles is limited likewise.
constexpr int64_t kMaxStores = 2600, kMaxKernelStores = 5200;
// Of all operands of a tile, in one step. Two steps are in registers at a time.
constexpr int64_t kMaxWords = 48;

struct Loop {
  int32_t var;
  int64_t extent;
  LoopKind kind;
};

struct BufferedOperand {
  Expr load;
  std::vector<Loop> dims;  // the loops of the tile that it depends on
  bool is_vector = false;  // the last one goes along consecutive elements
  int32_t slot = -1;

  int64_t elements() const {
    int64_t n = 1;
    for (const Loop& d : dims) n *= d.extent;
    return n;
  }
};

// The digits of a loop's variable where an operand uses some of them only: virtual threads count
// rows and columns by one loop. var = sum of digit * stride.
struct Digit {
  int32_t var;
  int64_t stride;
};

class TileRewriter {
 public:
  // threads: of a block.
  TileRewriter(ir::Program& program, const RegisterTile& tile, int64_t threads)
      : program_(program),
        pool_(*program.pool),
        tile_(tile),
        threads_(threads),
        store_(tile.store) {}

  // The stores that the steps are written out to; 0: the tile must stay as it is.
  int64_t Plan() {
    way_ = program_.stages[static_cast<size_t>(store_->stage)].hints[ir::Hint::kRegisterBuffering];
    if (way_ == 0 || tile_.body != store_ || tile_.inside.empty()) return 0;
    // Sums that stay in memory gain nothing.
    if ((buffer(store_->slot).bytes() + 3) / 4 > MaxRegisterWords(threads_)) return 0;
    // Matrix units read their operands themselves.
    if (program_.stages[static_cast<size_t>(store_->stage)].hints[ir::Hint::kMatrixUnit] != 0)
      return 0;
    if (!std::ranges::equal(tile_.loops | std::views::take(tile_.outside.size()), tile_.outside) ||
        std::ranges::count(tile_.loops, LoopKind::kVectorized, &ir::StmtNode::loop_kind) > 0)
      return 0;
    for (Stmt loop : tile_.inside) SplitDigits(loop);
    if (!FindOperands()) return 0;
    int64_t words = 0, stores = 1;
    for (const BufferedOperand& operand : operands_)
      words += (operand.elements() * operand.load->type.bytes() + 3) / 4;
    for (const Loop& loop : inside_) stores *= loop.extent;
    stores += words;
    if (words > kMaxWords) return 0;
    first_step_ = tile_.outside.size();
    while (first_step_ > 0 &&
           stores * steps_ * tile_.outside[first_step_ - 1]->extent <= kMaxStores) {
      steps_ *= tile_.outside[--first_step_]->extent;
    }
    return steps_ > 1 ? stores * steps_ : 0;
  }

  Stmt Run() {
    for (BufferedOperand& operand : operands_) operand.slot = NewBuffer(operand);
    const std::span<const Stmt> step_loops = std::span(tile_.outside).subspan(first_step_);
    const int32_t var =
        step_loops.size() == 1 ? step_loops[0]->var : NewVar(step_loops.back()->var, ".f", steps_);
    const Expr step = pool_.Var(var), next = pool_.Add(step, pool_.Int(1));
    const Stmt first = Read(pool_.Int(0));
    const Stmt body[] = {ir::MakeIf(pool_, pool_.Lt(step, pool_.Int(steps_ - 1)), Read(next)),
                         Multiply(step)};
    const Stmt all[] = {
        first, ir::MakeFor(pool_, var, steps_, LoopKind::kUnrolled, ir::MakeSeq(pool_, body))};
    Stmt result = ir::MakeSeq(pool_, all);
    for (const BufferedOperand& operand : operands_)
      result = ir::MakeAlloc(pool_, operand.slot, result);
    for (size_t i = first_step_; i-- > 0;) result = ir::WithBody(pool_, tile_.outside[i], result);
    return result;
  }

 private:
  const ir::Buffer& buffer(int32_t slot) const {
    return program_.buffers[static_cast<size_t>(slot)];
  }

  // ---- loops that are several

  // One loop per digit that the store tells apart; the loop itself where that is all of it.
  void SplitDigits(Stmt loop) {
    std::vector<int64_t> strides = {1};
    const auto cut = [&](int64_t at) {
      if (at > 1 && at < loop->extent) strides.push_back(at);
    };
    for (Expr e : store_->exprs()) {
      ir::Visit(e, [&](Expr node) {
        if (const auto range = DigitsOf(node, loop->var)) {
          cut(range->first);
          cut(range->second);
        }
      });
    }
    std::ranges::sort(strides);
    strides.erase(std::unique(strides.begin(), strides.end()), strides.end());
    bool is_chain = loop->extent % strides.back() == 0;
    for (size_t i = 1; i < strides.size(); ++i) is_chain &= strides[i] % strides[i - 1] == 0;
    if (strides.size() == 1 || !is_chain) {
      inside_.push_back({loop->var, loop->extent, loop->loop_kind});
      return;
    }
    std::vector<Digit> digits;
    for (size_t i = strides.size(); i-- > 0;) {
      const int64_t end = i + 1 < strides.size() ? strides[i + 1] : loop->extent;
      const int32_t var = NewVar(loop->var, ".d", end / strides[i]);
      digits.push_back({var, strides[i]});
      inside_.push_back({var, end / strides[i], loop->loop_kind});
    }
    std::vector<Expr> exprs;
    for (Expr e : store_->exprs()) exprs.push_back(InDigits(e, loop->var, digits));
    store_ = ir::MakeStore(pool_, store_->slot, store_->stage,
                           std::span(exprs).first(exprs.size() - 1), exprs.back());
  }

  // [first, second) of the strides that (var // c) % d and the like are made of.
  static std::optional<std::pair<int64_t, int64_t>> DigitsOf(Expr e, int32_t var) {
    if (e->op == Op::kVar && e->id == var) return std::pair(int64_t{1}, INT64_MAX);
    if ((e->op != Op::kFloorDiv && e->op != Op::kFloorMod) || !e->arg(1)->is_const_int() ||
        e->arg(1)->int_value <= 0)
      return std::nullopt;
    const auto of = DigitsOf(e->arg(0), var);
    if (!of) return std::nullopt;
    const int64_t c = e->arg(1)->int_value;
    if (c > INT32_MAX || of->first > INT32_MAX) return std::nullopt;
    const int64_t at = of->first * c;
    return e->op == Op::kFloorDiv ? std::pair(std::min(at, of->second), of->second)
                                  : std::pair(of->first, std::min(at, of->second));
  }

  Expr InDigits(Expr e, int32_t var, std::span<const Digit> digits) {
    if (const auto range = DigitsOf(e, var)) {
      Expr sum = pool_.Int(0);
      for (const Digit& digit : digits) {
        if (digit.stride < range->first || digit.stride >= range->second) continue;
        sum =
            pool_.Add(sum, pool_.Mul(pool_.Var(digit.var), pool_.Int(digit.stride / range->first)));
      }
      return sum;
    }
    if (e->num_args == 0) return pool_.Import(e);
    std::vector<Expr> args;
    for (Expr arg : e->args()) args.push_back(InDigits(arg, var, digits));
    return e->op == Op::kLoad ? pool_.Load(e->id, args, e->type)
                              : pool_.WithArgs(pool_.Import(e), args);
  }

  // ---- operands

  // False where something is read under a condition, or nothing of shared memory.
  bool FindOperands() {
    bool any_condition = false;
    ir::Visit(store_->value(), [&](Expr e) {
      any_condition |= e->op == Op::kIf || e->op == Op::kAnd || e->op == Op::kOr;
      if (e->op != Op::kLoad || buffer(e->id).scope != ir::Scope::kShared) return;
      if (e->type.bytes() == 1 || std::ranges::any_of(e->args(), ir::HasLoad)) return;
      BufferedOperand operand{.load = e, .dims = {}};
      for (const Loop& loop : inside_) {
        const bool uses = std::ranges::any_of(
            e->args(), [&](Expr index) { return ir::UsesVar(index, loop.var); });
        if (uses && loop.extent > 1) operand.dims.push_back(loop);
      }
      const auto along = std::ranges::find_if(
          operand.dims, [&](const Loop& loop) { return IsContiguous(e, loop.var); });
      operand.is_vector = along != operand.dims.end();
      if (operand.is_vector) std::rotate(along, along + 1, operand.dims.end());
      operands_.push_back(std::move(operand));
    });
    return !any_condition && !operands_.empty();
  }

  bool IsContiguous(Expr load, int32_t var) const {
    const arith::Linear address = arith::Flatten(load->args(), buffer(load->id).shape);
    return std::ranges::any_of(address.terms, [&](const arith::Term& term) {
      return term.atom->op == Op::kVar && term.atom->id == var && term.coefficient == 1;
    });
  }

  // The loops of the steps, given the number of the step.
  ir::Substitution VarsOfStep(Expr step) const {
    ir::Substitution names;
    int64_t inner = 1;
    for (size_t i = tile_.outside.size(); i-- > first_step_;) {
      const Stmt loop = tile_.outside[i];
      Expr value = pool_.FloorDiv(step, pool_.Int(inner));
      if (i > first_step_) value = pool_.FloorMod(value, pool_.Int(loop->extent));
      names.SetVar(loop->var, value);
      inner *= loop->extent;
    }
    return names;
  }

  Stmt Read(Expr step) {
    std::vector<Stmt> reads;
    for (const BufferedOperand& operand : operands_) {
      ir::Substitution names = VarsOfStep(step);
      std::vector<Expr> place = {pool_.FloorMod(step, pool_.Int(2))};
      std::vector<int32_t> loops;
      for (const Loop& dim : operand.dims) {
        loops.push_back(NewVar(dim.var, ".f", dim.extent));
        place.push_back(pool_.Var(loops.back()));
        names.SetVar(dim.var, place.back());
      }
      Stmt read = ir::MakeStore(pool_, operand.slot, store_->stage, place,
                                pool_.Substitute(operand.load, names));
      for (size_t i = loops.size(); i-- > 0;) {
        const bool is_vector = operand.is_vector && i + 1 == loops.size();
        read = ir::MakeFor(pool_, loops[i], operand.dims[i].extent,
                           is_vector ? LoopKind::kVectorized : LoopKind::kUnrolled, read);
      }
      reads.push_back(read);
    }
    return ir::MakeSeq(pool_, reads);
  }

  Stmt Multiply(Expr step) {
    ir::Substitution names = VarsOfStep(step);
    if (way_ == 2) RunToAndFro(names);
    const Expr half = pool_.FloorMod(step, pool_.Int(2));
    std::vector<Expr> indices;
    for (Expr index : store_->indices()) indices.push_back(pool_.Substitute(index, names));
    Stmt result = ir::MakeStore(pool_, store_->slot, store_->stage, indices,
                                FromRegisters(store_->value(), half, names));
    for (size_t i = inside_.size(); i-- > 0;)
      result = ir::MakeFor(pool_, inside_[i].var, inside_[i].extent, inside_[i].kind, result);
    return result;
  }

  Expr FromRegisters(Expr e, Expr half, const ir::Substitution& names) {
    const auto operand = std::ranges::find(operands_, e, &BufferedOperand::load);
    if (operand != operands_.end()) {
      std::vector<Expr> place = {half};
      for (const Loop& dim : operand->dims) {
        const Expr given = names.VarOrNull(dim.var);
        place.push_back(given != nullptr ? given : pool_.Var(dim.var));
      }
      return pool_.Load(operand->slot, place, e->type);
    }
    if (e->num_args == 0 || e->op == Op::kLoad) return pool_.Substitute(e, names);
    std::vector<Expr> args;
    for (Expr arg : e->args()) args.push_back(FromRegisters(arg, half, names));
    return pool_.WithArgs(pool_.Import(e), args);
  }

  // Each loop of the tile but the first runs backwards every second time that it is entered.
  void RunToAndFro(ir::Substitution& names) {
    for (size_t i = 1; i < inside_.size(); ++i) {
      Expr entered = pool_.Int(0);  // how often, as far as it is odd or even
      int64_t stride = 1;
      for (size_t outer = i; outer-- > 0 && stride % 2 != 0;) {
        entered = pool_.Add(entered, pool_.Var(inside_[outer].var));
        stride *= inside_[outer].extent;
      }
      const Loop& loop = inside_[i];
      const Expr var = pool_.Var(loop.var);
      // var, or extent - 1 - var, without a comparison.
      const Expr turned = pool_.Sub(pool_.Int(loop.extent - 1), pool_.Mul(var, pool_.Int(2)));
      names.SetVar(loop.var,
                   pool_.Add(var, pool_.Mul(pool_.FloorMod(entered, pool_.Int(2)), turned)));
    }
  }

  int32_t NewVar(int32_t like, std::string_view suffix, int64_t extent) {
    return ir::AddVar(program_, program_.vars[static_cast<size_t>(like)].name + std::string(suffix),
                      extent, "");
  }

  int32_t NewBuffer(const BufferedOperand& operand) {
    std::vector<int64_t> shape = {2};
    for (const Loop& dim : operand.dims) shape.push_back(dim.extent);
    return ir::AddBuffer(program_,
                         {buffer(operand.load->id).name + ".registers", operand.load->type,
                          std::move(shape), ir::Scope::kLocal, 0},
                         "");
  }

  ir::Program& program_;
  ir::ExprPool& pool_;
  const RegisterTile& tile_;
  const int64_t threads_;
  Stmt store_;                // the tile's, in terms of inside_
  std::vector<Loop> inside_;  // of the tile, outermost first
  int32_t way_ = 0;
  std::vector<BufferedOperand> operands_;
  size_t first_step_ = 0;  // of tile_.outside: it and those inside are the steps
  int64_t steps_ = 1;
};

class Pass {
 public:
  Pass(ir::Program& program, const ir::Kernel& kernel)
      : program_(program), threads_(kernel.block[0] * kernel.block[1] * kernel.block[2]) {}

  Stmt Rewrite(Stmt stmt) {
    if (const std::optional<RegisterTile> tile = MatchRegisterTile(program_, stmt)) {
      TileRewriter rewriter(program_, *tile, threads_);
      const int64_t stores = rewriter.Plan();
      if (stores == 0 || stores_ + stores > kMaxKernelStores) return stmt;
      stores_ += stores;
      return rewriter.Run();
    }
    return ir::RewriteChildren(*program_.pool, stmt, [&](Stmt child) { return Rewrite(child); });
  }

 private:
  ir::Program& program_;
  const int64_t threads_;
  int64_t stores_ = 0;
};

}  // namespace

void DoubleBufferOperands(ir::Program& program) {
  if (std::ranges::all_of(program.stages,
                          [](const auto& s) { return s.hints[ir::Hint::kRegisterBuffering] == 0; }))
    return;
  for (ir::Kernel& kernel : program.kernels)
    kernel.body = Pass(program, kernel).Rewrite(kernel.body);
}

}  // namespace kiln::codegen
