// Program -> LLVM module. Internal: this header includes LLVM; only the llvm_*.cc files and their
// tests see it.
//
// One function per kernel, one task function per parallel loop, kiln_entry (proto/cpu_abi.h) calls
// the kernels in order. Loops become canonical LLVM loops; unrolled loops are expanded; vectorized
// loops become vector code here, not by hints:
//
//   * Inside a vectorized loop an expression is a scalar until its value differs between lanes,
//   then a vector.
//   * A flattened index is split into a part that all lanes share and one constant offset per lane.
//     Offsets 0,1,2,... are one vector access, a few contiguous runs are one access each, anything
//     else goes element by element.
//   * A condition that differs between lanes becomes a mask on the loads and stores under it.
//   * A vector body runs statement by statement instead of lane by lane. That is the same only if
//     no lane touches what another one stores: where this can't be proved, the loop runs serially
//     (llvm_lanes.cc).
//
// Every access carries the alias scope of its buffer, so that LLVM knows that buffers are disjoint,
// inside task functions too.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/arith/linear.h"
#include "compiler/arith/range.h"
#include "compiler/codegen/compiled.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// What the generator has to know of the machine.
struct CpuFeatures {
  int vector_bytes = 16;       // of the widest register
  bool half_convert = false;   // F16C: float16 <-> float32 in hardware
  bool masked_access = false;  // AVX-512: part of a register is loaded and stored in one go
};

// May it be evaluated although its value is not wanted: cannot fault and costs little.
bool IsSpeculatable(ir::Expr e);

// Emits into an empty module. The program has passed CheckCpuProgram and ir::Verify. Single use.
class Emitter {
 public:
  Emitter(const ir::Program& program, const CpuFeatures& features, llvm::Module& module);

  void EmitProgram(Fault fault);

 private:
  // The lanes [base, base + count) of the vectorized loop that is being emitted.
  struct Lanes {
    int32_t var;
    int count;
    llvm::Value* base;                           // i64
    std::optional<int64_t> known_base;           // when constant
    llvm::Value* mask = nullptr;                 // <count x i1>; null: all lanes are active
    std::unordered_map<ir::Expr, bool> depends;  // does the value differ between lanes?
  };
  // Index arithmetic is emitted once, at the head of the innermost loop that it depends on: an
  // unrolled body of hundreds of accesses must not repeat it hundreds of times. One scope per open
  // loop, the function's own first. Atoms are told apart by the values of expanded variables too.
  struct Scope {
    llvm::BasicBlock* block;
    llvm::Instruction* last = nullptr;  // of the head; null: nothing there yet
    std::map<std::pair<ir::Expr, std::vector<int64_t>>, llvm::Value*> atoms;
    std::map<std::pair<llvm::Value*, llvm::Value*>, llvm::Value*> sums, products;
    std::map<std::pair<int32_t, llvm::Value*>, llvm::Value*> pointers;
  };
  // A value with the depth of the loop whose head computes it; -1: right here.
  struct Placed {
    llvm::Value* value;
    int depth;
  };
  // index of lane l = shared + offsets[l]; offsets[0] == 0.
  struct LaneIndex {
    arith::Linear shared;
    std::vector<int64_t> offsets;
    bool IsUniform() const;
    bool IsContiguous() const;
  };

  // llvm_program.cc: functions
  llvm::Function* EmitKernel(const ir::Kernel& kernel);
  void EmitEntry(const std::vector<llvm::Function*>& kernels, Fault fault);
  void EmitFault(Fault fault);
  void AnnotatePointer(llvm::LoadInst* load, int64_t bytes);
  void CorruptFirstOutput(llvm::Value* args);
  void StoreBehindFirstOutput(llvm::Value* args);
  llvm::LoadInst* LoadArgument(llvm::Value* args, int32_t slot);
  void MakeAliasScopes();
  llvm::Value* EntryAlloca(llvm::Type* type, const std::string& name);

  // llvm_stmt.cc: statements
  void EmitStmt(ir::Stmt stmt);
  void EmitFor(ir::Stmt loop);
  void EmitStore(ir::Stmt store);  // llvm_memory.cc
  void EmitIf(ir::Stmt stmt);
  void EmitAlloc(ir::Stmt alloc);
  void EmitSerialFor(ir::Stmt loop);
  void EmitUnrolledFor(ir::Stmt loop);
  void EmitVectorizedFor(ir::Stmt loop);
  void EmitLanes(ir::Stmt loop, int count, llvm::Value* base, std::optional<int64_t> known_base);
  int LanesPerRegister(ir::Stmt loop) const;
  int NarrowestVectorStore(ir::Stmt stmt, int32_t slot, int lanes) const;
  int NextPiece(int64_t remaining, int per_register) const;
  void EmitParallelFor(ir::Stmt loop);
  llvm::Function* EmitTask(ir::Stmt loop, llvm::StructType* closure_type,
                           const std::vector<int32_t>& slots, const std::vector<int32_t>& vars);
  // Emits body for var = begin .. end-1 in steps of 1, as a loop; guard: begin may equal end.
  template <typename Body>
  void EmitLoop(const std::string& name, llvm::Value* begin, llvm::Value* end, bool guard,
                Body&& body);
  int depth() const { return static_cast<int>(scopes_.size()) - 1; }
  void Bind(int32_t var, llvm::Value* value, std::optional<int64_t> known);
  void Unbind(int32_t var);
  int64_t ExpandedStores(ir::Stmt stmt) const;

  // llvm_lanes.cc: what may be vectorized, and how indices differ between lanes
  bool LanesAreIndependent(ir::Stmt loop) const;
  bool Depends(ir::Expr e);
  arith::Linear IndexForm(ir::Expr index) const;  // with quotients joined
  std::optional<LaneIndex> SplitLanes(const arith::Linear& form);

  // llvm_expr.cc: expressions. Results are of ComputeType, scalar or (inside lanes) vector.
  llvm::Value* Eval(ir::Expr e);
  llvm::Value* EvalBinary(ir::Expr e);
  llvm::Value* EvalCompare(ir::Expr e);
  llvm::Value* EvalLogic(ir::Expr e);
  llvm::Value* EvalIf(ir::Expr e);
  llvm::Value* EvalIfByLane(ir::Expr e, llvm::Value* condition);
  llvm::Value* EvalIfByBranch(ir::Expr e, llvm::Value* condition);
  llvm::Value* EvalSelect(ir::Expr e);
  llvm::Value* EvalCast(ir::Expr e);
  llvm::Value* EvalCall(ir::Expr e);
  llvm::Value* EvalVar(ir::Expr e);
  // The same in 32 bits, where nothing in e can leave them; null where it could.
  llvm::Value* EvalNarrow(ir::Expr e);
  bool FitsNarrow(ir::Expr e) const;
  llvm::Value* FloorDivide(ir::Expr e, llvm::Value* a, llvm::Value* b, bool remainder);
  llvm::Value* Arithmetic(ir::Expr e, llvm::Value* a, llvm::Value* b);
  llvm::Value* Libm(const std::string& name, llvm::ArrayRef<llvm::Value*> args);
  llvm::Value* Splat(llvm::Value* v);
  void Unify(llvm::Value*& a, llvm::Value*& b);
  llvm::Type* LaneType(llvm::Type* scalar) const;
  llvm::Value* And(llvm::Value* mask, llvm::Value* condition);

  // llvm_number.cc: types in registers and in memory
  llvm::Type* ComputeType(ir::Type type);
  llvm::Type* MemoryType(ir::Type type);
  llvm::Value* FromMemory(ir::Type type, llvm::Value* v);
  llvm::Value* ToMemory(ir::Type type, llvm::Value* v);
  llvm::Value* Convert(ir::Type from, ir::Type to, llvm::Value* v);
  llvm::Value* NarrowToFloat(
      llvm::Value* v);  // double -> float, round to odd: may be rounded again
  llvm::Value* HalfToFloat(llvm::Value* bits);  // i16 -> float, integer arithmetic
  llvm::Value* FloatToHalf(llvm::Value* v);     // float -> i16
  llvm::Value* BFloatToFloat(llvm::Value* bits);
  llvm::Value* FloatToBFloat(llvm::Value* v);
  llvm::Type* Like(llvm::Value* shape, llvm::Type* scalar) const;

  // llvm_memory.cc: loads and stores
  arith::Linear Flatten(int32_t slot, std::span<const ir::Expr> indices) const;
  llvm::Value* EmitLoad(int32_t slot, std::span<const ir::Expr> indices);
  llvm::Value* LoadScalar(int32_t slot, const arith::Linear& index);
  llvm::Value* LoadGuarded(int32_t slot, const arith::Linear& index);
  llvm::Value* LoadLanes(int32_t slot, const LaneIndex& index, bool in_bounds);
  llvm::Value* LoadRuns(int32_t slot, const LaneIndex& index);
  llvm::Value* LoadPieces(int32_t slot, const arith::Linear& index, int64_t lanes);
  llvm::Value* LoadGather(int32_t slot, llvm::Value* index);
  void StoreLanes(int32_t slot, const LaneIndex& index, llvm::Value* value, bool in_bounds);
  void StoreElements(int32_t slot, llvm::Value* index, llvm::Value* value);
  llvm::Value* AtHead(int depth, llvm::function_ref<llvm::Value*()> make);
  Placed PlaceAtom(ir::Expr atom);
  Placed PlaceTerm(const arith::Term& term);
  Placed PlaceSum(const arith::Linear& form);  // without the constant; value is null if it is zero
  llvm::Value* EmitLinear(const arith::Linear& form, bool with_constant);
  llvm::Value* WideIndex(ir::Expr atom);  // i64, or vector of it
  llvm::Value* VectorIndex(const arith::Linear& form);
  llvm::Value* OffsetVector(const LaneIndex& index);
  llvm::Value* Pointer(int32_t slot, llvm::Value* index, bool in_bounds);
  llvm::Value* Pointer(int32_t slot, const arith::Linear& index, bool in_bounds);
  llvm::Align AlignmentOf(int32_t slot, const arith::Linear& index) const;
  llvm::Value* PlainLoad(int32_t slot, llvm::Type* type, llvm::Value* pointer,
                         llvm::Align alignment);
  void PlainStore(int32_t slot, llvm::Value* value, llvm::Value* pointer, llvm::Align alignment);
  template <typename Instruction>
  Instruction* Tag(int32_t slot, Instruction* access);

  const ir::Buffer& buffer(int32_t slot) const {
    return program_.buffers[static_cast<size_t>(slot)];
  }
  const std::string& var_name(int32_t var) const {
    return program_.vars[static_cast<size_t>(var)].name;
  }
  llvm::Value*& pointer(int32_t slot) { return pointers_[static_cast<size_t>(slot)]; }

  const ir::Program& program_;
  const CpuFeatures features_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> builder_;

  std::vector<llvm::MDNode*> alias_scope_;  // by slot
  std::vector<llvm::MDNode*> no_alias_;
  std::vector<arith::Interval> ranges_;  // by variable

  // State of the function being emitted.
  llvm::Function* function_ = nullptr;
  llvm::Value* runtime_ = nullptr;             // KilnCpuContext*, null inside tasks
  std::vector<llvm::Value*> pointers_;         // by slot
  std::vector<int> stored_lanes_;              // by slot: of its narrowest vector store; 0: none
  std::vector<llvm::Value*> values_;           // by variable, i64; null: not bound here
  std::vector<std::optional<int64_t>> known_;  // by variable
  std::vector<int> depths_;                    // by variable: its scope
  std::vector<Scope> scopes_;                  // of the open loops
  int num_tasks_ = 0;
  int32_t stage_ = -1;
  std::optional<Lanes> lanes_;
};

}  // namespace kiln::codegen
