// Emits a program as an LLVM module. Internal to this folder: this header includes LLVM.
//
// There is one function per kernel and one task function per parallel loop; kiln_entry
// (proto/cpu_abi.h) calls the kernels in order. Loops become canonical LLVM loops; unrolled loops
// are expanded; vectorized loops become vector code here, not by hints:
//
//   * Inside a vectorized loop an expression is a scalar until its value differs between lanes;
//     then it is a vector.
//   * A flattened index is split into a part that all lanes share and one constant offset per lane.
//     Offsets 0, 1, 2, ... are one vector access; a few contiguous runs are one access each; other
//     offsets go element by element.
//   * A condition that differs between lanes becomes a mask on the loads and stores under it.
//   * A vector body runs statement by statement instead of lane by lane. If that could give another
//     result, the loop runs serially.
//
// Parts:
//   lanes.h       loops that may be vectors, and the differences of indices between lanes
//   loop_heads.h  index arithmetic at the heads of loops
//   number.h      types in registers and in memory
//   buffers.h     facts about buffers for LLVM
//   entry.h       the entry function, faults
// The emitter has the remaining parts, which need each other: statements, expressions, loads and
// stores.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <optional>
#include <string>
#include <vector>

#include "compiler/arith/linear.h"
#include "compiler/arith/range.h"
#include "compiler/codegen/compiled.h"
#include "compiler/codegen/llvm/buffers.h"
#include "compiler/codegen/llvm/entry.h"
#include "compiler/codegen/llvm/lanes.h"
#include "compiler/codegen/llvm/loop_heads.h"
#include "compiler/codegen/llvm/number.h"
#include "compiler/codegen/used_slots.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// Properties of the machine that the generator depends on.
struct CpuFeatures {
  // Bytes of the widest register.
  int vector_bytes = 16;
  // F16C: hardware converts between float16 and float32.
  bool half_convert = false;
  // AVX-512: part of a register is loaded and stored in one instruction.
  bool masked_access = false;
};

// Returns true if the expression may be evaluated although its value is not wanted: it cannot fault
// and costs little.
bool IsSpeculatable(ir::Expr e);

// Emits into an empty module. The program must have passed CheckCpuProgram and ir::Verify. Single
// use.
class Emitter {
 public:
  Emitter(const ir::Program& program, const CpuFeatures& features, llvm::Module& module);

  void EmitProgram(Fault fault);

 private:
  // A value with the depth of the loop whose head computes it. -1: it is computed in place.
  struct Placed {
    llvm::Value* value;
    int depth;
  };

  // ---- program.cc: kernels
  CpuKernel EmitKernel(const ir::Kernel& kernel);

  // ---- stmt.cc: statements
  void EmitStmt(ir::Stmt stmt);
  void EmitFor(ir::Stmt loop);
  // Defined in memory.cc.
  void EmitStore(ir::Stmt store);
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
  llvm::Function* EmitTask(ir::Stmt loop, llvm::StructType* closure_type, const UsedNames& used,
                           const std::vector<int32_t>& slots, const std::vector<int32_t>& vars);
  // Emits body for var = begin .. end-1 in steps of 1, as a loop. `guard`: begin may equal end.
  template <typename Body>
  void EmitLoop(const std::string& name, llvm::Value* begin, llvm::Value* end, bool guard,
                Body&& body);
  void Bind(int32_t var, llvm::Value* value, std::optional<int64_t> known);
  void Unbind(int32_t var);
  int64_t ExpandedStores(ir::Stmt stmt) const;

  // Returns true if the value differs between the lanes of the open vectorized loop. False if no
  // such loop is open.
  bool Depends(ir::Expr e) { return lanes_ && lanes_->Depends(e); }

  // ---- expr.cc: expressions. Results are of ComputeType, scalar or (inside lanes) vector.
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
  // Evaluates in 32 bits if no value in e can exceed them. Returns null otherwise.
  llvm::Value* EvalNarrow(ir::Expr e);
  bool FitsNarrow(ir::Expr e) const;
  llvm::Value* FloorDivide(ir::Expr e, llvm::Value* a, llvm::Value* b, bool remainder);
  llvm::Value* Arithmetic(ir::Expr e, llvm::Value* a, llvm::Value* b);
  llvm::Value* Libm(const std::string& name, llvm::ArrayRef<llvm::Value*> args);
  llvm::Value* Splat(llvm::Value* v);
  void Unify(llvm::Value*& a, llvm::Value*& b);
  llvm::Type* LaneType(llvm::Type* scalar) const;
  llvm::Value* And(llvm::Value* mask, llvm::Value* condition);

  // ---- memory.cc: loads and stores
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
  Placed PlaceAtom(ir::Expr atom);
  Placed PlaceTerm(const arith::Term& term);
  // Leaves the constant out. The value is null if the sum has no terms.
  Placed PlaceSum(const arith::Linear& form);
  llvm::Value* EmitLinear(const arith::Linear& form, bool with_constant);
  // Returns an i64, or a vector of i64.
  llvm::Value* WideIndex(ir::Expr atom);
  llvm::Value* VectorIndex(const arith::Linear& form);
  llvm::Value* OffsetVector(const LaneIndex& index);
  llvm::Value* Pointer(int32_t slot, llvm::Value* index, bool in_bounds);
  llvm::Value* Pointer(int32_t slot, const arith::Linear& index, bool in_bounds);
  llvm::Align AlignmentOf(int32_t slot, const arith::Linear& index) const;
  llvm::Value* PlainLoad(int32_t slot, llvm::Type* type, llvm::Value* pointer,
                         llvm::Align alignment);
  void PlainStore(int32_t slot, llvm::Value* value, llvm::Value* pointer, llvm::Align alignment);

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
  NumberFormats numbers_;
  BufferAliases aliases_;

  // Indexed by variable.
  std::vector<arith::Interval> ranges_;

  // State of the function that is being emitted.
  llvm::Function* function_ = nullptr;
  // The KilnCpuContext*. Null inside tasks.
  llvm::Value* runtime_ = nullptr;
  // Indexed by slot.
  std::vector<llvm::Value*> pointers_;
  // Indexed by slot: lanes of the narrowest vector store. 0: there is none.
  std::vector<int> stored_lanes_;
  // Indexed by variable, i64. Null: the variable is not bound here.
  std::vector<llvm::Value*> values_;
  // Indexed by variable.
  std::vector<std::optional<int64_t>> known_;
  // Indexed by variable: depth of its scope.
  std::vector<int> depths_;
  // Heads of the open loops.
  LoopHeads heads_;
  int num_tasks_ = 0;
  int32_t stage_ = -1;
  std::optional<Lanes> lanes_;
};

}  // namespace kiln::codegen
