#include "compiler/ir/program.h"

#include <algorithm>
#include <cmath>
#include <new>

namespace kiln::ir {
namespace {
template <typename T>
const T* CopyInto(ExprPool& pool, std::span<const T> items) {
  if (items.empty()) return nullptr;
  T* copy = static_cast<T*>(pool.Allocate(items.size_bytes()));
  std::copy(items.begin(), items.end(), copy);
  return copy;
}

StmtNode* NewNode(ExprPool& pool, StmtKind kind, std::span<const Expr> exprs,
                  std::span<const Stmt> children) {
  auto* node = new (pool.Allocate(sizeof(StmtNode))) StmtNode;
  node->kind = kind;
  node->num_exprs = static_cast<uint32_t>(exprs.size());
  node->num_children = static_cast<uint32_t>(children.size());
  node->exprs_begin = CopyInto(pool, exprs);
  node->children_begin = CopyInto(pool, children);
  return node;
}
}  // namespace

std::string_view LoopKindName(LoopKind kind) {
  switch (kind) {
    case LoopKind::kSerial:
      return "for";
    case LoopKind::kParallel:
      return "parallel";
    case LoopKind::kVectorized:
      return "vectorize";
    case LoopKind::kUnrolled:
      return "unroll";
    case LoopKind::kVThread:
      return "vthread";
    case LoopKind::kBlockX:
      return "blockIdx.x";
    case LoopKind::kBlockY:
      return "blockIdx.y";
    case LoopKind::kBlockZ:
      return "blockIdx.z";
    case LoopKind::kCluster:
      return "cluster";
    case LoopKind::kThreadX:
      return "threadIdx.x";
    case LoopKind::kThreadY:
      return "threadIdx.y";
    case LoopKind::kThreadZ:
      return "threadIdx.z";
  }
  return "?";
}

std::string_view ScopeName(Scope scope) {
  switch (scope) {
    case Scope::kInput:
      return "input";
    case Scope::kOutput:
      return "output";
    case Scope::kWorkspace:
      return "workspace";
    case Scope::kShared:
      return "shared";
    case Scope::kCluster:
      return "cluster";
    case Scope::kLocal:
      return "local";
  }
  return "?";
}

Stmt MakeFor(ExprPool& pool, int32_t var, int64_t extent, LoopKind kind, Stmt body) {
  const Stmt children[] = {body};
  StmtNode* node = NewNode(pool, StmtKind::kFor, {}, children);
  node->loop_kind = kind;
  node->var = var;
  node->extent = extent;
  return node;
}

Stmt MakeStore(ExprPool& pool, int32_t slot, int32_t stage, std::span<const Expr> indices,
               Expr value, bool is_async) {
  std::vector<Expr> exprs(indices.begin(), indices.end());
  exprs.push_back(value);
  StmtNode* node = NewNode(pool, StmtKind::kStore, exprs, {});
  node->slot = slot;
  node->stage = stage;
  node->is_async = is_async;
  return node;
}

Stmt MakeIf(ExprPool& pool, Expr condition, Stmt then) {
  if (condition->is_const_int(1)) return then;
  const Expr exprs[] = {condition};
  const Stmt children[] = {then};
  return NewNode(pool, StmtKind::kIf, exprs, children);
}

Stmt MakeSeq(ExprPool& pool, std::span<const Stmt> children) {
  std::vector<Stmt> flat;
  for (Stmt child : children) {
    if (child->kind == StmtKind::kSeq) {
      flat.insert(flat.end(), child->children().begin(), child->children().end());
    } else {
      flat.push_back(child);
    }
  }
  if (flat.size() == 1) return flat[0];
  return NewNode(pool, StmtKind::kSeq, {}, flat);
}

Stmt MakeAlloc(ExprPool& pool, int32_t slot, Stmt body) {
  const Stmt children[] = {body};
  StmtNode* node = NewNode(pool, StmtKind::kAlloc, {}, children);
  node->slot = slot;
  return node;
}

Stmt MakeBarrier(ExprPool& pool, int pending) {
  StmtNode* node = NewNode(pool, StmtKind::kBarrier, {}, {});
  node->pending = static_cast<int8_t>(pending);
  return node;
}

Stmt MakeClusterBarrier(ExprPool& pool) {
  StmtNode* node = NewNode(pool, StmtKind::kBarrier, {}, {});
  node->is_of_cluster = true;
  return node;
}

Stmt MakeCommit(ExprPool& pool) { return NewNode(pool, StmtKind::kCommit, {}, {}); }

Stmt WithChildren(ExprPool& pool, Stmt stmt, std::span<const Stmt> children) {
  if (std::ranges::equal(children, stmt->children())) return stmt;
  switch (stmt->kind) {
    case StmtKind::kFor:
      return MakeFor(pool, stmt->var, stmt->extent, stmt->loop_kind, children[0]);
    case StmtKind::kIf:
      return MakeIf(pool, stmt->condition(), children[0]);
    case StmtKind::kSeq:
      return MakeSeq(pool, children);
    case StmtKind::kAlloc:
      return MakeAlloc(pool, stmt->slot, children[0]);
    case StmtKind::kStore:
    case StmtKind::kBarrier:
    case StmtKind::kCommit:
      return stmt;
  }
  return stmt;
}

namespace {
bool IsZeroBits(Expr e) {
  return e->is_const_int(0) ||
         (e->op == Op::kFloat && e->float_value == 0 && !std::signbit(e->float_value));
}
}  // namespace

Expr CopiedLoad(Expr value) {
  while (value->op == Op::kIf || value->op == Op::kSelect) {
    if (!IsZeroBits(value->arg(2)) || HasLoad(value->arg(0))) return nullptr;
    value = value->arg(1);
  }
  return value->op == Op::kLoad ? value : nullptr;
}

bool IsCopyable(const Program& program, Expr value) {
  const Expr load = CopiedLoad(value);
  if (load == nullptr) return false;
  const Scope scope = program.buffers[static_cast<size_t>(load->id)].scope;
  return scope == Scope::kInput || scope == Scope::kWorkspace;
}

int64_t Buffer::num_elements() const {
  int64_t n = 1;
  for (int64_t extent : shape) n *= extent;
  return n;
}

int Program::num_args() const {
  int n = 0;
  for (const Buffer& buffer : buffers) {
    if (buffer.scope >= Scope::kShared) break;
    ++n;
  }
  return n;
}

}  // namespace kiln::ir
