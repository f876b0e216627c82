#include <algorithm>
#include <set>
#include <string_view>

#include "base/numbers/integers.h"
#include "compiler/ir/program.h"
#include "compiler/ir/traverse.h"

namespace kiln::ir {
namespace {

constexpr int64_t kMaxBufferBytes = int64_t{1} << 46;

bool IsArgument(Scope scope) { return scope < Scope::kShared; }
bool IsBlock(LoopKind kind) { return kind >= LoopKind::kBlockX && kind <= LoopKind::kBlockZ; }

class Verifier {
 public:
  explicit Verifier(const Program& program)
      : program_(program), vars_(program.vars.size()), buffers_(program.buffers.size()) {}

  Status Run() {
    if (program_.pool == nullptr) return Internal("the program has no pool");
    KILN_RETURN_IF_ERROR(CheckVars());
    KILN_RETURN_IF_ERROR(CheckBuffers());
    KILN_RETURN_IF_ERROR(CheckInstructions());
    for (const ProgramStage& stage : program_.stages) {
      KILN_RETURN_IF_ERROR(Annotate(CheckHints(HintPlace::kStage, stage.hints),
                                    fmt::format("stage '{}'", stage.name)));
    }
    std::set<std::string_view> names;
    for (const Kernel& kernel : program_.kernels) {
      if (!names.insert(kernel.name).second)
        return Internal("two kernels are named '{}'", kernel.name);
      const std::string name = fmt::format("kernel '{}'", kernel.name);
      KILN_RETURN_IF_ERROR(Annotate(CheckHints(HintPlace::kKernel, kernel.hints), name));
      KILN_RETURN_IF_ERROR(Annotate(CheckKernel(kernel), name));
    }
    return OkStatus();
  }

 private:
  // Tells whether the walk is before, inside or after the loop of a variable or the alloc of a
  // buffer.
  enum class Life : uint8_t { kUnseen, kInside, kOver };

  static Status CheckHints(HintPlace place, const Hints& hints) {
    for (const HintRow& row : kHints) {
      const int32_t value = hints[row.hint], most = row.place == place ? row.most : 0;
      if (value < 0 || value > most)
        return Internal("{} is {}, expected 0 to {}", row.word, value, most);
    }
    return OkStatus();
  }

  Status CheckVars() {
    std::set<std::string_view> names;
    for (const LoopVar& var : program_.vars) {
      if (!names.insert(var.name).second) return Internal("two variables are named '{}'", var.name);
      if (var.extent < 1) return Internal("variable '{}' has extent {}", var.name, var.extent);
    }
    return OkStatus();
  }

  Status CheckInstructions() {
    std::set<std::string_view> names;
    for (const std::string& name : program_.instructions) {
      if (name.empty()) return Internal("an instruction has no name");
      if (!names.insert(name).second) return Internal("two instructions are named '{}'", name);
    }
    return OkStatus();
  }

  Status CheckBuffers() {
    std::set<std::string_view> names;
    Scope last = Scope::kInput;
    for (const Buffer& buffer : program_.buffers) {
      if (!names.insert(buffer.name).second)
        return Internal("two buffers are named '{}'", buffer.name);
      int64_t bytes = buffer.type.bytes();
      for (int64_t extent : buffer.shape) {
        if (extent < 1) return Internal("buffer '{}' has an extent of {}", buffer.name, extent);
        bytes = MultiplyCounts(bytes, extent);
        if (bytes > kMaxBufferBytes) {
          return Internal("buffer '{}' is larger than {} bytes", buffer.name, kMaxBufferBytes);
        }
      }
      if (IsArgument(buffer.scope) && buffer.scope < last &&
          !(last == Scope::kOutput && buffer.scope == Scope::kInput)) {
        return Internal("buffer '{}' ({}) comes after a buffer of scope {}", buffer.name,
                        ScopeName(buffer.scope), ScopeName(last));
      }
      last = buffer.scope;
      const bool may_be_index = buffer.scope == Scope::kInput && buffer.type.is_int();
      if (buffer.index_limit < 0 || (buffer.index_limit > 0 && !may_be_index)) {
        return Internal("buffer '{}' ({} {}) has index limit {}", buffer.name,
                        ScopeName(buffer.scope), TypeName(buffer.type), buffer.index_limit);
      }
      KILN_RETURN_IF_ERROR(CheckPacked(buffer));
    }
    return OkStatus();
  }

  static Status CheckPacked(const Buffer& buffer) {
    if (!buffer.packing) return OkStatus();
    if (buffer.scope != Scope::kInput) {
      return Internal("buffer '{}' ({}) is packed, expected an input", buffer.name,
                      ScopeName(buffer.scope));
    }
    const Status status = kiln::CheckPacking(*buffer.packing);
    if (!status.ok()) return Internal("buffer '{}': {}", buffer.name, Message(status));
    if (PackedShape(*buffer.packing) != buffer.shape)
      return Internal("buffer '{}' has another shape than its packing", buffer.name);
    return OkStatus();
  }

  Status CheckKernel(const Kernel& kernel) {
    const auto is_identifier = [](std::string_view name) {
      if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
      for (char c : name) {
        const bool fits =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!fits) return false;
      }
      return true;
    };
    if (!is_identifier(kernel.name)) return Internal("the name is not an identifier");
    for (int i = 0; i < 3; ++i) {
      if (kernel.grid[i] < 1 || kernel.block[i] < 1) {
        return Internal("launch dimensions are {} x {}", kernel.grid[i], kernel.block[i]);
      }
    }
    if (kernel.cluster < 1) return Internal("clusters have {} blocks", kernel.cluster);
    kernel_ = &kernel;
    loops_.clear();
    cluster_var_ = -1;
    return Check(kernel.body);
  }

  Status Check(Stmt s) {
    if (s == nullptr) return Internal("a statement is missing");
    switch (s->kind) {
      case StmtKind::kFor:
        return CheckFor(s);
      case StmtKind::kStore:
        return CheckStore(s);
      case StmtKind::kAlloc:
        return CheckAlloc(s);
      case StmtKind::kInstruction:
        return CheckInstruction(s);
      case StmtKind::kBarrier:
        if (s->is_of_cluster && kernel_->cluster == 1)
          return Internal("a barrier of a cluster in a kernel without");
        if (s->is_of_warp && (s->is_of_cluster || s->pending >= 0))
          return Internal("a barrier of warps that is one of more, or waits for copies");
        return OkStatus();
      case StmtKind::kCommit:
        return OkStatus();
      case StmtKind::kIf:
        if (s->num_exprs != 1 || s->num_children != 1) return Internal("an if of wrong form");
        if (!s->condition()->type.is_bool()) {
          return Internal("the condition of an if is {}", TypeName(s->condition()->type));
        }
        KILN_RETURN_IF_ERROR(CheckExpr(s->condition()));
        return Check(s->body());
      case StmtKind::kSeq:
        for (Stmt child : s->children()) KILN_RETURN_IF_ERROR(Check(child));
        return OkStatus();
    }
    return Internal("statement kind {}", static_cast<int>(s->kind));
  }

  Status CheckFor(Stmt s) {
    if (s->var < 0 || s->var >= std::ssize(program_.vars))
      return Internal("a loop over variable {}", s->var);
    if (s->num_children != 1) return Internal("a loop has {} bodies", s->num_children);
    const LoopVar& var = program_.vars[s->var];
    if (s->extent != var.extent) {
      return Internal("the loop over '{}' has extent {}, the variable {}", var.name, s->extent,
                      var.extent);
    }
    if (vars_[s->var] != Life::kUnseen)
      return Internal("variable '{}' is bound by two loops", var.name);
    KILN_RETURN_IF_ERROR(CheckLoopKind(s, var));
    vars_[s->var] = Life::kInside;
    loops_.push_back(s->loop_kind);
    const bool is_cluster = s->loop_kind == LoopKind::kCluster;
    if (is_cluster) cluster_var_ = s->var;
    const Status status = Check(s->body());
    if (is_cluster) cluster_var_ = -1;
    loops_.pop_back();
    vars_[s->var] = Life::kOver;
    return status;
  }

  Status CheckLoopKind(Stmt s, const LoopVar& var) {
    const LoopKind kind = s->loop_kind;
    const bool is_bound = kind >= LoopKind::kBlockX;
    for (LoopKind outer : loops_) {
      if (kind == LoopKind::kParallel && outer != LoopKind::kSerial) {
        return Internal("parallel loop '{}' is inside a loop of kind {}", var.name,
                        LoopKindName(outer));
      }
      if (outer == LoopKind::kVectorized && kind == LoopKind::kVectorized) {
        return Internal("vectorized loop '{}' is inside another", var.name);
      }
      if (is_bound && outer == LoopKind::kParallel) {
        return Internal("loop '{}' is bound to {} inside a parallel loop", var.name,
                        LoopKindName(kind));
      }
      if (is_bound && outer == kind) {
        return Internal("loop '{}' is bound to {}, and so is a loop around it", var.name,
                        LoopKindName(kind));
      }
    }
    if (!is_bound) return OkStatus();
    if (kind == LoopKind::kCluster) {
      if (kernel_->cluster == s->extent) return OkStatus();
      return Internal("loop '{}' of extent {} is bound to the {} blocks of a cluster", var.name,
                      s->extent, kernel_->cluster);
    }
    const int first = static_cast<int>(IsBlock(kind) ? LoopKind::kBlockX : LoopKind::kThreadX);
    const auto& sizes = IsBlock(kind) ? kernel_->grid : kernel_->block;
    const int64_t size = sizes[static_cast<int>(kind) - first];
    if (size == s->extent) return OkStatus();
    return Internal("loop '{}' of extent {} is bound to {} of size {}", var.name, s->extent,
                    LoopKindName(kind), size);
  }

  Status CheckAlloc(Stmt s) {
    if (s->slot < 0 || s->slot >= std::ssize(program_.buffers))
      return Internal("an alloc of buffer {}", s->slot);
    if (s->num_children != 1) return Internal("an alloc has {} bodies", s->num_children);
    const Buffer& buffer = program_.buffers[s->slot];
    if (IsArgument(buffer.scope)) {
      return Internal("{} buffer '{}' is allocated", ScopeName(buffer.scope), buffer.name);
    }
    if (buffers_[s->slot] != Life::kUnseen)
      return Internal("buffer '{}' is allocated twice", buffer.name);
    if (buffer.scope == Scope::kCluster &&
        (kernel_->cluster == 1 || buffer.shape.empty() || buffer.shape[0] != kernel_->cluster)) {
      return Internal("buffer '{}' has no part for each of the {} blocks of a cluster", buffer.name,
                      kernel_->cluster);
    }
    buffers_[s->slot] = Life::kInside;
    const Status status = Check(s->body());
    buffers_[s->slot] = Life::kOver;
    return status;
  }

  Status CheckInstruction(Stmt s) {
    if (s->instruction < 0 || s->instruction >= std::ssize(program_.instructions))
      return Internal("instruction {} does not exist", s->instruction);
    const std::string& name = program_.instructions[s->instruction];
    if (s->num_children != 1)
      return Internal("instruction '{}' has {} bodies", name, s->num_children);
    if (!IsOneThreads(s->body())) {
      return Internal(
          "the body of instruction '{}' has more than loops of a thread, conditions and stores",
          name);
    }
    return Check(s->body());
  }

  // Returns true if nothing in the statement binds, waits for or allocates anything.
  static bool IsOneThreads(Stmt s) {
    if (s == nullptr) return true;
    switch (s->kind) {
      case StmtKind::kFor:
        if (s->loop_kind != LoopKind::kSerial && s->loop_kind != LoopKind::kUnrolled) return false;
        break;
      case StmtKind::kStore:
        return !s->is_async;
      case StmtKind::kIf:
      case StmtKind::kSeq:
        break;
      default:
        return false;
    }
    return std::ranges::all_of(s->children(), IsOneThreads);
  }

  Status CheckAccess(int32_t slot, std::span<const Expr> indices, Type type,
                     std::string_view what) {
    if (slot < 0 || slot >= std::ssize(program_.buffers))
      return Internal("a {} of buffer {}", what, slot);
    const Buffer& buffer = program_.buffers[slot];
    if (indices.size() != buffer.shape.size()) {
      return Internal("a {} of '{}' has {} indices, its rank is {}", what, buffer.name,
                      indices.size(), buffer.shape.size());
    }
    for (Expr index : indices) {
      if (!index->type.is_int()) {
        return Internal("a {} of '{}' has an index of type {}", what, buffer.name,
                        TypeName(index->type));
      }
    }
    if (type != buffer.type) {
      return Internal("a {} of '{}' is {}, the buffer {}", what, buffer.name, TypeName(type),
                      TypeName(buffer.type));
    }
    if (!IsArgument(buffer.scope) && buffers_[slot] != Life::kInside) {
      return Internal("a {} of '{}' stands outside its alloc", what, buffer.name);
    }
    return OkStatus();
  }

  Status CheckStore(Stmt s) {
    if (s->num_exprs == 0) return Internal("a store has no value");
    KILN_RETURN_IF_ERROR(CheckAccess(s->slot, s->indices(), s->value()->type, "store"));
    const Buffer& buffer = program_.buffers[s->slot];
    if (buffer.scope == Scope::kInput)
      return Internal("a store of '{}', which is an input", buffer.name);
    if (s->stage < 0 || s->stage >= std::ssize(program_.stages)) {
      return Internal("a store of '{}' belongs to stage {}", buffer.name, s->stage);
    }
    for (Expr e : s->exprs()) KILN_RETURN_IF_ERROR(CheckExpr(e));
    if (buffer.scope == Scope::kCluster) {
      const Expr part = s->indices()[0];
      if (part->op != Op::kVar || part->id != cluster_var_)
        return Internal("a store of '{}' that is not to the own block's part", buffer.name);
    }
    if (s->is_async && (buffer.scope != Scope::kShared || !IsCopyable(program_, s->value())))
      return Internal("an asynchronous store of '{}' is no copy to shared memory", buffer.name);
    return OkStatus();
  }

  Status CheckExpr(Expr root) {
    Status status;
    Visit(root, [&](Expr e) {
      if (status.ok() && e->op == Op::kVar) status = CheckVar(e);
      if (status.ok() && e->op == Op::kLoad)
        status = CheckAccess(e->id, e->args(), e->type, "load");
    });
    return status;
  }

  Status CheckVar(Expr e) {
    if (e->id < 0 || e->id >= std::ssize(program_.vars))
      return Internal("variable {} does not exist", e->id);
    const LoopVar& var = program_.vars[e->id];
    if (e->type != kIndex)
      return Internal("variable '{}' is used as {}", var.name, TypeName(e->type));
    if (vars_[e->id] != Life::kInside)
      return Internal("variable '{}' is used outside its loop", var.name);
    return OkStatus();
  }

  const Program& program_;
  std::vector<Life> vars_, buffers_;
  const Kernel* kernel_ = nullptr;
  std::vector<LoopKind> loops_;
  // Variable of the loop over the blocks of a cluster, while the walk is inside of it.
  int32_t cluster_var_ = -1;
};

}  // namespace

Status Verify(const Program& program) { return Verifier(program).Run(); }

}  // namespace kiln::ir
