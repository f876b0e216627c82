#include "compiler/ir/program.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "compiler/ir/traverse.h"

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

Stmt MakeWarpBarrier(ExprPool& pool) {
  StmtNode* node = NewNode(pool, StmtKind::kBarrier, {}, {});
  node->is_of_warp = true;
  return node;
}

Stmt MakeCommit(ExprPool& pool) { return NewNode(pool, StmtKind::kCommit, {}, {}); }

Stmt MakeInstruction(ExprPool& pool, int32_t instruction, Stmt body) {
  const Stmt children[] = {body};
  StmtNode* node = NewNode(pool, StmtKind::kInstruction, {}, children);
  node->instruction = instruction;
  return node;
}

namespace {
template <typename Items>
std::string UniqueName(const Items& items, std::string base, std::string_view separator) {
  const auto is_taken = [&](std::string_view name) {
    return std::ranges::any_of(items, [&](const auto& item) { return item.name == name; });
  };
  if (!is_taken(base)) return base;
  for (int i = 1;; ++i) {
    std::string name = fmt::format("{}{}{}", base, separator, i);
    if (!is_taken(name)) return name;
  }
}
}  // namespace

int32_t AddVar(Program& program, std::string name, int64_t extent, std::string_view separator) {
  program.vars.push_back({UniqueName(program.vars, std::move(name), separator), extent});
  return static_cast<int32_t>(program.vars.size()) - 1;
}

int32_t AddBuffer(Program& program, Buffer buffer, std::string_view separator) {
  buffer.name = UniqueName(program.buffers, std::move(buffer.name), separator);
  program.buffers.push_back(std::move(buffer));
  return static_cast<int32_t>(program.buffers.size()) - 1;
}

int32_t AddInstruction(Program& program, std::string_view name) {
  const auto at = std::ranges::find(program.instructions, name);
  const auto number = static_cast<int32_t>(at - program.instructions.begin());
  if (at == program.instructions.end()) program.instructions.emplace_back(name);
  return number;
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
