// Emitter: statements.
#include <algorithm>
#include <utility>

#include "base/numbers/integers.h"
#include "compiler/codegen/llvm/emit.h"
#include "compiler/ir/traverse.h"

namespace kiln::codegen {
namespace {
using ir::LoopKind;
using ir::Stmt;
using ir::StmtKind;
using llvm::BasicBlock;
using llvm::Value;

// A loop is expanded if that makes at most this many stores of a register. Otherwise it stays a
// loop: longer code leaves the instruction cache, and takes long to compile.
constexpr int64_t kMaxExpandedStores = 512;
// A vectorized loop is cut into pieces of this many registers, and up to this many pieces are
// expanded.
constexpr int kMaxRegistersPerVector = 4;
constexpr int64_t kMaxExpandedPieces = 8;
}  // namespace

void Emitter::EmitStmt(Stmt stmt) {
  switch (stmt->kind) {
    case StmtKind::kFor:
      EmitFor(stmt);
      return;
    case StmtKind::kStore:
      EmitStore(stmt);
      return;
    case StmtKind::kIf:
      EmitIf(stmt);
      return;
    case StmtKind::kAlloc:
      EmitAlloc(stmt);
      return;
    case StmtKind::kSeq:
      for (Stmt child : stmt->children()) EmitStmt(child);
      return;
    case StmtKind::kBarrier:
    case StmtKind::kCommit:
    case StmtKind::kInstruction:
      break;
  }
  KILN_CHECK(false, "statement kind {} in a CPU program", static_cast<int>(stmt->kind));
}

void Emitter::EmitFor(Stmt loop) {
  if (loop->extent <= 0) return;
  if (loop->extent == 1) {
    Bind(loop->var, builder_.getInt64(0), 0);
    EmitStmt(loop->body());
    Unbind(loop->var);
    return;
  }
  switch (loop->loop_kind) {
    case LoopKind::kParallel:
      if (runtime_ != nullptr && !lanes_) return EmitParallelFor(loop);
      return EmitSerialFor(loop);
    case LoopKind::kVectorized:
      if (LanesAreIndependent(program_, loop, known_, ranges_)) return EmitVectorizedFor(loop);
      return EmitSerialFor(loop);
    case LoopKind::kUnrolled:
      return EmitUnrolledFor(loop);
    default:
      return EmitSerialFor(loop);
  }
}

void Emitter::Bind(int32_t var, Value* value, std::optional<int64_t> known) {
  const auto i = static_cast<size_t>(var);
  values_[i] = value;
  known_[i] = known;
  depths_[i] = known ? 0 : heads_.depth();
  if (known) ranges_[i] = {*known, *known};
}

void Emitter::Unbind(int32_t var) {
  const auto i = static_cast<size_t>(var);
  values_[i] = nullptr;
  known_[i].reset();
  ranges_[i] = {0, program_.vars[i].extent - 1};
}

template <typename Body>
void Emitter::EmitLoop(const std::string& name, Value* begin, Value* end, bool guard, Body&& body) {
  BasicBlock* from = builder_.GetInsertBlock();
  BasicBlock* loop = BasicBlock::Create(context_, name + ".body", function_);
  BasicBlock* exit = BasicBlock::Create(context_, name + ".end");
  if (guard) {
    builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), loop, exit);
  } else {
    builder_.CreateBr(loop);
  }
  builder_.SetInsertPoint(loop);
  llvm::PHINode* i = builder_.CreatePHI(builder_.getInt64Ty(), 2, name);
  i->addIncoming(begin, from);
  heads_.Open(loop, i);
  body(i);
  heads_.Close();
  Value* next = builder_.CreateAdd(i, builder_.getInt64(1), name + ".next", true, true);
  i->addIncoming(next, builder_.GetInsertBlock());
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), loop, exit);
  exit->insertInto(function_);
  builder_.SetInsertPoint(exit);
}

void Emitter::EmitSerialFor(Stmt loop) {
  EmitLoop(var_name(loop->var), builder_.getInt64(0),
           builder_.getInt64(static_cast<uint64_t>(loop->extent)), false, [&](Value* i) {
             Bind(loop->var, i, std::nullopt);
             EmitStmt(loop->body());
             Unbind(loop->var);
           });
}

int64_t Emitter::ExpandedStores(Stmt stmt) const {
  if (stmt->kind == StmtKind::kStore) return 1;
  int64_t stores = 0;
  for (Stmt child : stmt->children()) stores += ExpandedStores(child);
  stores = std::max<int64_t>(stores, 1);
  if (stmt->kind == StmtKind::kFor && stmt->loop_kind == LoopKind::kVectorized) {
    const int64_t per_register = LanesPerRegister(stmt);
    const int64_t registers = CeilDiv(stmt->extent, per_register);
    return stores * std::min(registers, kMaxExpandedPieces * kMaxRegistersPerVector);
  }
  if (stmt->kind == StmtKind::kFor && stmt->loop_kind == LoopKind::kUnrolled &&
      stmt->extent <= kMaxExpandedStores && stores * stmt->extent <= kMaxExpandedStores) {
    stores *= std::max<int64_t>(stmt->extent, 1);
  }
  return stores;
}

void Emitter::EmitUnrolledFor(Stmt loop) {
  if (loop->extent > kMaxExpandedStores ||
      ExpandedStores(loop->body()) * loop->extent > kMaxExpandedStores) {
    return EmitSerialFor(loop);
  }
  for (int64_t i = 0; i < loop->extent; ++i) {
    Bind(loop->var, builder_.getInt64(static_cast<uint64_t>(i)), i);
    EmitStmt(loop->body());
  }
  Unbind(loop->var);
}

int Emitter::LanesPerRegister(Stmt loop) const {
  int widest = 4;
  const auto visit = [&](auto& self, Stmt stmt) -> void {
    if (stmt->kind == StmtKind::kStore) widest = std::max(widest, buffer(stmt->slot).type.bytes());
    for (Stmt child : stmt->children()) self(self, child);
  };
  visit(visit, loop->body());
  return features_.vector_bytes / widest;
}

// Returns the lanes of the next vector: 4, 2 or 1 registers. The remainder at the end is one vector
// of an odd length if the machine has masked accesses, else powers of two.
int Emitter::NextPiece(int64_t remaining, int per_register) const {
  int lanes = kMaxRegistersPerVector * per_register;
  while (lanes > 1 && lanes > remaining) {
    if (lanes == per_register && features_.masked_access) return static_cast<int>(remaining);
    lanes /= 2;
  }
  return lanes;
}

// Returns the lanes of the narrowest vector that a statement stores to a buffer, or 0 if it stores
// no vector there. `lanes` is the number of lanes of the loop around the statement (0: there is
// none). A loop counts by its first piece: the remainder at the end may be narrow, but is one piece
// of many.
int Emitter::NarrowestVectorStore(Stmt stmt, int32_t slot, int lanes) const {
  if (stmt->kind == StmtKind::kStore) return stmt->slot == slot ? lanes : 0;
  if (stmt->kind == StmtKind::kFor && stmt->loop_kind == LoopKind::kVectorized && stmt->extent > 1)
    lanes = NextPiece(stmt->extent, LanesPerRegister(stmt));
  int narrowest = 0;
  for (Stmt child : stmt->children()) {
    const int stored = NarrowestVectorStore(child, slot, lanes);
    if (stored != 0 && (narrowest == 0 || stored < narrowest)) narrowest = stored;
  }
  return narrowest;
}

void Emitter::EmitVectorizedFor(Stmt loop) {
  const int per_register = LanesPerRegister(loop);
  const int max_lanes = kMaxRegistersPerVector * per_register;
  const auto constant = [&](int64_t v) { return builder_.getInt64(static_cast<uint64_t>(v)); };
  int64_t done = 0;
  if (const int64_t pieces = loop->extent / max_lanes; pieces > kMaxExpandedPieces) {
    EmitLoop(var_name(loop->var), constant(0), constant(pieces), false, [&](Value* p) {
      const auto multiply = [&] {
        return builder_.CreateMul(p, constant(max_lanes), "", true, true);
      };
      Value* base = heads_.Emit(heads_.depth(), multiply);
      EmitLanes(loop, max_lanes, base, std::nullopt);
    });
    done = pieces * max_lanes;
  }
  while (done < loop->extent) {
    const int lanes = NextPiece(loop->extent - done, per_register);
    EmitLanes(loop, lanes, constant(done), done);
    done += lanes;
  }
}

void Emitter::EmitLanes(Stmt loop, int count, Value* base, std::optional<int64_t> known_base) {
  if (count == 1) {
    Bind(loop->var, base, known_base);
    EmitStmt(loop->body());
    Unbind(loop->var);
    return;
  }
  // The variable has no known value: inside lanes it is no constant, whatever its base.
  Bind(loop->var, base, std::nullopt);
  lanes_ = Lanes{.var = loop->var,
                 .count = count,
                 .base = base,
                 .known_base = known_base,
                 .mask = nullptr,
                 .depends = {}};
  if (known_base) ranges_[static_cast<size_t>(loop->var)] = {*known_base, *known_base + count - 1};
  EmitStmt(loop->body());
  lanes_.reset();
  Unbind(loop->var);
}

void Emitter::EmitIf(Stmt stmt) {
  Value* condition = Eval(stmt->condition());
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (constant->isOne()) EmitStmt(stmt->body());
    return;
  }
  if (condition->getType()->isVectorTy()) {
    Value* outer = lanes_->mask;
    lanes_->mask = And(outer, condition);
    EmitStmt(stmt->body());
    lanes_->mask = outer;
    return;
  }
  BasicBlock* then = BasicBlock::Create(context_, "then", function_);
  BasicBlock* end = BasicBlock::Create(context_, "end");
  builder_.CreateCondBr(condition, then, end);
  builder_.SetInsertPoint(then);
  EmitStmt(stmt->body());
  builder_.CreateBr(end);
  end->insertInto(function_);
  builder_.SetInsertPoint(end);
}

// The memory belongs to the whole function. The lifetime markers tell when it is in use, so that
// buffers share stack.
void Emitter::EmitAlloc(Stmt alloc) {
  Value*& memory = pointer(alloc->slot);
  if (memory == nullptr) {
    const ir::Buffer& local = buffer(alloc->slot);
    memory = EntryAlloca(*function_,
                         llvm::ArrayType::get(numbers_.MemoryType(local.type),
                                              static_cast<uint64_t>(local.num_elements())),
                         local.name);
  }
  auto* bytes = builder_.getInt64(static_cast<uint64_t>(buffer(alloc->slot).bytes()));
  builder_.CreateLifetimeStart(memory, bytes);
  stored_lanes_[static_cast<size_t>(alloc->slot)] =
      NarrowestVectorStore(alloc->body(), alloc->slot, 0);
  EmitStmt(alloc->body());
  builder_.CreateLifetimeEnd(pointer(alloc->slot), bytes);
}

void Emitter::EmitParallelFor(Stmt loop) {
  const UsedNames used = NamesUsedIn(loop->body());
  std::vector<int32_t> slots, vars;
  std::vector<Value*> captured;
  std::vector<llvm::Type*> types;
  for (const int32_t slot : used.slots) {
    if (pointer(slot) == nullptr) continue;
    slots.push_back(slot);
    captured.push_back(pointer(slot));
  }
  for (const int32_t var : used.vars) {
    const auto v = static_cast<size_t>(var);
    if (values_[v] == nullptr || known_[v]) continue;
    vars.push_back(var);
    captured.push_back(values_[v]);
  }
  for (Value* value : captured) types.push_back(value->getType());
  auto* closure_type = llvm::StructType::get(context_, types);
  Value* closure = EntryAlloca(*function_, closure_type, "closure");
  for (size_t i = 0; i < captured.size(); ++i) {
    builder_.CreateStore(captured[i],
                         builder_.CreateStructGEP(closure_type, closure, static_cast<unsigned>(i)));
  }
  llvm::Function* task = EmitTask(loop, closure_type, used, slots, vars);
  llvm::Type* pointer_type = builder_.getPtrTy();
  auto* type = llvm::FunctionType::get(
      builder_.getVoidTy(), {pointer_type, pointer_type, pointer_type, builder_.getInt64Ty()},
      false);
  Value* parallel_for =
      builder_.CreateAlignedLoad(pointer_type, runtime_, llvm::Align(8), "parallel_for");
  builder_.CreateCall(
      type, parallel_for,
      {runtime_, task, closure, builder_.getInt64(static_cast<uint64_t>(loop->extent))});
}

llvm::Function* Emitter::EmitTask(Stmt loop, llvm::StructType* closure_type, const UsedNames& used,
                                  const std::vector<int32_t>& slots,
                                  const std::vector<int32_t>& vars) {
  llvm::Type* i64 = builder_.getInt64Ty();
  auto* type =
      llvm::FunctionType::get(builder_.getVoidTy(), {builder_.getPtrTy(), i64, i64}, false);
  auto* task = llvm::Function::Create(
      type, llvm::Function::InternalLinkage,
      function_->getName() + ".parallel." + std::to_string(num_tasks_++), module_);
  const char* const names[] = {"closure", "begin", "end"};
  for (unsigned i = 0; i < 3; ++i) task->getArg(i)->setName(names[i]);

  // State of the enclosing function is set aside. Known variables stay known.
  const llvm::IRBuilderBase::InsertPointGuard insert_point(builder_);
  llvm::Function* const outer_function = std::exchange(function_, task);
  Value* const outer_runtime = std::exchange(runtime_, nullptr);
  LoopHeads outer_heads = std::exchange(heads_, LoopHeads(builder_));
  std::vector<Value*> outer_pointers, outer_values;
  std::vector<int> outer_depths;
  for (const int32_t slot : used.slots)
    outer_pointers.push_back(std::exchange(pointer(slot), nullptr));
  for (const int32_t var : vars) {
    outer_values.push_back(values_[static_cast<size_t>(var)]);
    outer_depths.push_back(depths_[static_cast<size_t>(var)]);
  }

  builder_.SetInsertPoint(BasicBlock::Create(context_, "entry", task));
  unsigned field = 0;
  const auto load_field = [&](const std::string& name) {
    Value* p = builder_.CreateStructGEP(closure_type, task->getArg(0), field);
    return builder_.CreateLoad(closure_type->getElementType(field++), p, name);
  };
  for (int32_t slot : slots) {
    llvm::LoadInst* load = load_field(buffer(slot).name);
    AnnotatePointer(load, buffer(slot).bytes());
    pointer(slot) = load;
  }
  for (int32_t var : vars) {
    values_[static_cast<size_t>(var)] = load_field(var_name(var));
    depths_[static_cast<size_t>(var)] = 0;
  }
  llvm::BasicBlock& entry = task->getEntryBlock();
  heads_.Open(&entry, entry.empty() ? nullptr : &entry.back());
  EmitLoop(var_name(loop->var), task->getArg(1), task->getArg(2), /*guard=*/true, [&](Value* i) {
    Bind(loop->var, i, std::nullopt);
    EmitStmt(loop->body());
    Unbind(loop->var);
  });
  builder_.CreateRetVoid();

  function_ = outer_function;
  runtime_ = outer_runtime;
  heads_ = std::move(outer_heads);
  for (size_t i = 0; i < used.slots.size(); ++i) pointer(used.slots[i]) = outer_pointers[i];
  for (size_t i = 0; i < vars.size(); ++i) {
    values_[static_cast<size_t>(vars[i])] = outer_values[i];
    depths_[static_cast<size_t>(vars[i])] = outer_depths[i];
  }
  return task;
}

}  // namespace kiln::codegen
