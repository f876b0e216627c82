#include <algorithm>
#include <memory>

#include "compiler/codegen/cuda_emit.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::LoopKind;
using ir::Op;
using ir::Stmt;
using ir::StmtKind;

constexpr int64_t kMaxExprNodes = 1 << 20;

bool IsBound(LoopKind kind) { return kind >= LoopKind::kBlockX; }

int CountClusterBarriers(Stmt stmt) {
  int count = stmt->kind == StmtKind::kBarrier && stmt->is_of_cluster ? 1 : 0;
  for (Stmt child : stmt->children()) count += CountClusterBarriers(child);
  return count;
}

// Is the last thing that a thread does, once, a barrier of its cluster?
bool EndsWithClusterBarrier(Stmt stmt) {
  if (stmt->kind == StmtKind::kSeq && stmt->num_children > 0)
    return EndsWithClusterBarrier(stmt->children().back());
  const bool is_once =
      stmt->kind == StmtKind::kFor && (IsBound(stmt->loop_kind) || stmt->extent == 1);
  if (is_once || stmt->kind == StmtKind::kAlloc) return EndsWithClusterBarrier(stmt->body());
  return stmt->kind == StmtKind::kBarrier && stmt->is_of_cluster;
}

std::vector<int64_t> ShapeInBlock(const ir::Buffer& buffer) {
  const bool is_part = buffer.scope == ir::Scope::kCluster;
  return {buffer.shape.begin() + (is_part ? 1 : 0), buffer.shape.end()};
}

constexpr int kNoStage = -1, kSeveralStages = -2;

int32_t OnlyStage(Stmt stmt) {
  if (stmt->kind == StmtKind::kStore) return stmt->stage;
  int32_t result = kNoStage;
  for (Stmt child : stmt->children()) {
    const int32_t stage = OnlyStage(child);
    if (stage == kNoStage || stage == result) continue;
    if (result != kNoStage) return kSeveralStages;
    result = stage;
  }
  return result;
}

}  // namespace

CudaEmitter::CudaEmitter(const ir::Program& program, const ir::Kernel& kernel,
                         const std::vector<std::string>& buffer_names,
                         const std::vector<std::string>& var_names, CudaNames& names,
                         CudaPreamble& preamble)
    : program_(program),
      kernel_(kernel),
      buffer_names_(buffer_names),
      var_names_(var_names),
      names_(names),
      preamble_(preamble),
      budget_(kMaxExprNodes) {
  for (const ir::LoopVar& var : program.vars) {
    env_.push_back(simplifier_.Var(simplifier_.AddVar(var.extent)));
  }
  FindClusterVar(kernel.body);
  FindWarpReductions(kernel.body);
  // Statements may be one node: the last one is known by its place.
  if (EndsWithClusterBarrier(kernel.body))
    last_cluster_barrier_ = CountClusterBarriers(kernel.body);
  unroll_ =
      PlanUnrolling(program, kernel.body, kernel.block[0] * kernel.block[1] * kernel.block[2]);
}

void CudaEmitter::FindClusterVar(Stmt stmt) {
  if (stmt->kind == StmtKind::kFor && stmt->loop_kind == LoopKind::kCluster)
    cluster_vars_.insert(stmt->var);
  for (Stmt child : stmt->children()) FindClusterVar(child);
}

StatusOr<std::string> CudaEmitter::EmitBody(const SharedLayout& shared, bool is_dynamic) {
  const CudaNames names = names_;
  for (const bool is_first : {true, false}) {
    is_first_pass_ = is_first;
    if (!is_first) names_ = names;
    out_.clear();
    cluster_barriers_ = 0;
    stage_ = kNoStage;
    EmitShared(shared, is_dynamic);
    Emit(kernel_.body);
    if (budget_ < 0) {
      return ResourceExhausted(
          "the expressions of kernel '{}' have more than {} nodes written out: inline less",
          kernel_.name, kMaxExprNodes);
    }
    budget_ = kMaxExprNodes;
  }
  return std::move(out_);
}

void CudaEmitter::Line(std::string_view text) {
  out_.append(static_cast<size_t>(2 * indent_), ' ');
  out_ += text;
  out_ += '\n';
}

std::string_view CudaEmitter::IndexTypeName(int64_t extent) {
  return extent <= INT32_MAX ? "int" : "long long";
}

void CudaEmitter::EmitShared(const SharedLayout& shared, bool is_dynamic) {
  if (is_dynamic) Line("extern __shared__ __align__(16) unsigned char shared_memory[];");
  for (const SharedBuffer& place : shared.buffers) {
    if (IsInRegisters(place.slot)) continue;
    const ir::Buffer& b = buffer(place.slot);
    const std::string& name = buffer_names_[static_cast<size_t>(place.slot)];
    const std::string type = CudaTypeName(b.type),
                      shape = fmt::format("[{}]", fmt::join(ShapeInBlock(b), ", "));
    if (is_dynamic) {
      Line(fmt::format("{0}* const {1} = reinterpret_cast<{0}*>(shared_memory + {2});  // {3}",
                       type, name, place.offset, shape));
    } else {
      Line(fmt::format("__shared__ __align__(16) {} {}[{}];  // {}", type, name, ElementsInBlock(b),
                       shape));
    }
  }
}

void CudaEmitter::Emit(Stmt stmt) {
  CommentStage(stmt);
  switch (stmt->kind) {
    case StmtKind::kFor:
      return EmitFor(stmt);
    case StmtKind::kStore:
      return EmitStore(stmt);
    case StmtKind::kIf:
      return EmitIf(stmt);
    case StmtKind::kSeq:
      for (size_t i = 0; i < stmt->children().size(); ++i) {
        const auto reduction = warp_reductions_.find(stmt->children()[i]);
        if (reduction == warp_reductions_.end()) {
          Emit(stmt->children()[i]);
        } else {
          EmitWarpReduction(reduction->second);
          i += reduction->second.count - 1;
        }
      }
      return;
    case StmtKind::kAlloc: {
      const ir::Buffer& b = buffer(stmt->slot);
      if (b.scope == ir::Scope::kLocal) {
        Line(fmt::format("{} {}[{}];  // [{}]", CudaTypeName(b.type),
                         buffer_names_[static_cast<size_t>(stmt->slot)], b.num_elements(),
                         fmt::join(b.shape, ", ")));
      }
      return Emit(stmt->body());
    }
    case StmtKind::kBarrier:
      if (stmt->is_of_cluster) {
        preamble_.cluster = true;
        return Line(++cluster_barriers_ == last_cluster_barrier_ ? "leave_cluster();"
                                                                 : "cluster_barrier();");
      }
      if (stmt->pending >= 0) {
        preamble_.async_copies = true;
        Line(fmt::format("wait_for_copies<{}>();", stmt->pending));
      }
      return Line("__syncthreads();");
    case StmtKind::kCommit:
      preamble_.async_copies = true;
      return Line("commit_copies();");
  }
}

void CudaEmitter::CommentStage(Stmt stmt) {
  if (stmt->kind == StmtKind::kBarrier || stmt->kind == StmtKind::kCommit) return;
  const int32_t stage = OnlyStage(stmt);
  if (stage >= 0 && stage != stage_) Line("// " + program_.stages[static_cast<size_t>(stage)].name);
  stage_ = stage;
}

void CudaEmitter::EnterVar(int32_t var) {
  depth_of_var_[var] = depth_;
  serial_depth_of_var_[var] = serial_depth_;
  EmitNamed(var);
}

void CudaEmitter::EmitNamed(int32_t var) {
  if (is_first_pass_) return;
  for (Expr e : named_order_) {
    Named& named = named_[e];
    if (named.var != var || !named.is_worth) continue;
    const Text text = PrintDivision(e);
    const Expr of = e->arg(0);
    const auto inner = named_.find(of);
    const std::string base = inner != named_.end() && !inner->second.name.empty()
                                 ? inner->second.name
                                 : var_names_[static_cast<size_t>(var)];
    const std::string divisor =
        e->arg(1)->is_const_int() ? fmt::format("_{}", e->arg(1)->int_value) : "";
    const std::string name = names_.Unique(
        fmt::format("{}_{}{}", base, e->op == Op::kFloorDiv ? "div" : "mod", divisor));
    Line(fmt::format("const {} {} = {};", text.is_long ? "long long" : "int", name, text.text));
    named.is_long = text.is_long;
    named.name = name;
  }
}

// Blocks of a cluster are neighbours along x.
std::string CudaEmitter::Coordinate(LoopKind kind) const {
  if (kind == LoopKind::kCluster) return fmt::format("blockIdx.x % {}", kernel_.cluster);
  if (kind == LoopKind::kBlockX && kernel_.cluster > 1)
    return fmt::format("blockIdx.x / {}", kernel_.cluster);
  return std::string(ir::LoopKindName(kind));
}

void CudaEmitter::EmitFor(Stmt loop) {
  const std::string& name = var_names_[static_cast<size_t>(loop->var)];
  if (IsBound(loop->loop_kind)) {
    if (loop->extent > 1) {
      Line(fmt::format("const int {} = {};  // 0..{}", name, Coordinate(loop->loop_kind),
                       loop->extent - 1));
      ++depth_;
      EnterVar(loop->var);
    }
    Emit(loop->body());
    if (loop->extent > 1) --depth_;
    return;
  }
  if (loop->extent == 1) return Emit(loop->body());
  if (EmitDotLoop(loop)) return;
  if (loop->loop_kind == LoopKind::kVectorized && !dot_ && EmitVectorized(loop)) return;
  if (loop->extent <= 0) return;
  const auto copies = unroll_.copies.find(loop);
  EmitLoop(loop->var, loop->extent, copies == unroll_.copies.end() ? 0 : copies->second,
           [&] { Emit(loop->body()); });
}

void CudaEmitter::EmitIf(Stmt stmt) {
  const Expr condition = SimplifyCondition(stmt->condition());
  if (condition->is_const_int(0)) return;
  if (condition->is_const_int()) return Emit(stmt->body());
  Line(fmt::format("if ({}) {{", PrintSimplified(condition).text));
  ++indent_;
  {
    const arith::FactScope facts(simplifier_, condition);
    Emit(stmt->body());
  }
  --indent_;
  Line("}");
}

void CudaEmitter::EmitStore(Stmt store) {
  if (dot_ && dot_->store == store) return EmitDotStore(store);
  const std::string element = Element(store->slot, PlaceOf(store->slot, store->indices()));
  if (store->is_async && EmitCopy(store, element, /*lanes=*/1)) return;
  const Expr value = store->value();
  const bool is_plain = value->type == ir::kFloat32 || value->type == ir::kFloat64;
  if (is_plain && value->op == Op::kAdd && value->arg(0)->op == Op::kLoad &&
      value->arg(0)->id == store->slot && !lanes_.contains(value->arg(0)) &&
      std::ranges::equal(value->arg(0)->args(), store->indices())) {
    return Line(fmt::format("{} += {};", element, Print(value->arg(1)).text));
  }
  Line(fmt::format("{} = {};", element, PrintRaw(value).text));
}

// The asynchronous copy of so many elements from where the store's value is loaded. False: the
// hardware has none of that size, and a plain store does.
bool CudaEmitter::EmitCopy(Stmt store, const std::string& to, int lanes) {
  const int64_t bytes = lanes * store->value()->type.bytes();
  if (bytes != 4 && bytes != 8 && bytes != 16) return false;
  Expr value = store->value();
  std::vector<std::unique_ptr<arith::FactScope>> facts;  // in the order of the conditions
  std::string conditions;
  for (; value->op != Op::kLoad; value = value->arg(1)) {
    const Expr condition = SimplifyCondition(value->arg(0));
    if (condition->is_const_int(0)) return false;
    if (condition->is_const_int()) continue;
    conditions += (conditions.empty() ? "" : " && ") + Wrap(PrintSimplified(condition), kAnd);
    if (value->op == Op::kIf)
      facts.push_back(std::make_unique<arith::FactScope>(simplifier_, condition));
  }
  const std::string from = Element(value->id, PlaceOf(value->id, value->args()));
  preamble_.async_copies = true;
  Line(conditions.empty()
           ? fmt::format("copy_async<{}>(&{}, &{});", bytes, to, from)
           : fmt::format("copy_async_if<{}>({}, &{}, &{});", bytes, conditions, to, from));
  while (!facts.empty()) facts.pop_back();
  return true;
}

}  // namespace kiln::codegen
