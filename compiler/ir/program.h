// A program: loop nests over buffers, ready for code generation. Lowering makes it, features read
// it, code generators turn it into LLVM IR or CUDA C, and the program interpreter runs it.
//
// Statements are immutable nodes in the program's ExprPool, like expressions. Loops run from 0 to
// extent-1; the extent is static. A loop's kind says how the loop is executed. The meaning is
// always that of the serial loop, except for bound (block, thread) loops, which all threads of a
// kernel share by kind.
//
// Every buffer access stays inside the buffer's shape; the interpreter checks it on every access.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arrays/packing.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/hints.h"

namespace kiln::ir {

enum class LoopKind : uint8_t {
  kSerial,
  // Iterations run on any CPU thread. Only serial loops may be around it.
  kParallel,
  // The innermost axis of a vector. The extent is the number of lanes.
  kVectorized,
  kUnrolled,
  kVThread,
  kBlockX,
  kBlockY,
  kBlockZ,
  // The blocks of a cluster.
  kCluster,
  kThreadX,
  kThreadY,
  kThreadZ,
};
// Returns "for", "parallel", "vectorize", "unroll", "vthread", "blockIdx.x", "cluster", ...
std::string_view LoopKindName(LoopKind kind);

enum class StmtKind : uint8_t {
  // Has var, extent, loop_kind, and the body in children[0].
  kFor,
  // buffers[slot][exprs[0..n-2]] = exprs[n-1]
  kStore,
  // Runs children[0] if exprs[0] is true.
  kIf,
  // Runs the children in order.
  kSeq,
  // Buffer `slot` exists inside children[0]. Its contents are undefined at entry.
  kAlloc,
  // All threads of a block, of a cluster, or of each warp wait for each other. If `pending` >= 0,
  // each thread first waits for its asynchronous copies.
  kBarrier,
  // The asynchronous stores since the last kCommit form a group. All threads reach it.
  kCommit,
  // One instruction of a GPU computes what children[0] says. compiler/instructions has the
  // instructions; a pass of lowering that finds what one computes makes the statement.
  kInstruction,
};

struct StmtNode;
using Stmt = const StmtNode*;

struct StmtNode {
  StmtKind kind;
  LoopKind loop_kind = LoopKind::kSerial;
  // kStore: an asynchronous copy to shared memory. It may happen at any time until its thread has
  // waited for the copy's group at a barrier; the element is undefined before that.
  bool is_async = false;
  // kBarrier: the threads of a cluster wait for each other.
  bool is_of_cluster = false;
  // kBarrier: the threads of each warp wait for each other. A warp is 32 threads that follow each
  // other in the order x, y, z. All threads of the block reach the barrier.
  bool is_of_warp = false;
  // kBarrier: number of the newest groups that need not be complete. -1: no group is waited for.
  int8_t pending = -1;
  // Used by kFor.
  int32_t var = -1;
  // kStore, kAlloc: index into Program::buffers.
  int32_t slot = -1;
  // kStore: index into Program::stages of the stage that the store computes.
  int32_t stage = -1;
  // kInstruction: index into Program::instructions.
  int32_t instruction = -1;
  // Used by kFor.
  int64_t extent = 0;
  uint32_t num_exprs = 0;
  uint32_t num_children = 0;
  const Expr* exprs_begin = nullptr;
  const Stmt* children_begin = nullptr;

  std::span<const Expr> exprs() const { return {exprs_begin, num_exprs}; }
  std::span<const Stmt> children() const { return {children_begin, num_children}; }
  Stmt body() const { return children_begin[0]; }
  Expr condition() const { return exprs_begin[0]; }
  std::span<const Expr> indices() const { return {exprs_begin, num_exprs - 1}; }
  Expr value() const { return exprs_begin[num_exprs - 1]; }
};

// Functions that make nodes, which live in `pool`.
Stmt MakeFor(ExprPool& pool, int32_t var, int64_t extent, LoopKind kind, Stmt body);
Stmt MakeStore(ExprPool& pool, int32_t slot, int32_t stage, std::span<const Expr> indices,
               Expr value, bool is_async = false);
Stmt MakeIf(ExprPool& pool, Expr condition, Stmt then);
// Flattens sequences. Returns the child itself if there is only one.
Stmt MakeSeq(ExprPool& pool, std::span<const Stmt> children);
Stmt MakeAlloc(ExprPool& pool, int32_t slot, Stmt body);
Stmt MakeBarrier(ExprPool& pool, int pending = -1);
Stmt MakeClusterBarrier(ExprPool& pool);
Stmt MakeWarpBarrier(ExprPool& pool);
Stmt MakeCommit(ExprPool& pool);
Stmt MakeInstruction(ExprPool& pool, int32_t instruction, Stmt body);

enum class Scope : uint8_t {
  // An argument that is only read.
  kInput,
  // An argument that is written.
  kOutput,
  // A whole intermediate tensor, also an argument. Its contents are undefined at entry.
  kWorkspace,
  // GPU: one per block.
  kShared,
  // GPU: one per cluster of blocks. The first dimension is the block: each block writes its own
  // part, which is in its shared memory, and reads all parts.
  kCluster,
  // One per thread: registers or stack.
  kLocal,
};
std::string_view ScopeName(Scope scope);

struct Buffer {
  // Unique in the program.
  std::string name;
  Type type;
  // Row-major.
  std::vector<int64_t> shape;
  Scope scope = Scope::kWorkspace;
  // If the input is used as an index, its values lie in [0, index_limit). Else 0.
  int64_t index_limit = 0;
  // Layout of an input that the program takes packed; `shape` is then the shape of the packed
  // array.
  std::optional<Packing> packing = {};

  int64_t num_elements() const;
  int64_t bytes() const { return num_elements() * type.bytes(); }
};

struct LoopVar {
  // Unique in the program.
  std::string name;
  int64_t extent;
};

// A stage of the schedule, to which stores belong.
struct ProgramStage {
  std::string name;
  // Hints of HintPlace::kStage.
  Hints hints = {};
};

struct Kernel {
  // An identifier.
  std::string name;
  Stmt body;
  // GPU launch dimensions, 1 where no loop is bound. If blocks form clusters, the grid counts
  // clusters, each of which has `cluster` blocks.
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> block = {1, 1, 1};
  int64_t cluster = 1;
  // Hints of HintPlace::kKernel.
  Hints hints = {};
};

// A value type. Copies share the pool, whose nodes are immutable.
struct Program {
  std::shared_ptr<ExprPool> pool;
  std::vector<LoopVar> vars;
  // The arguments come first, in call order: inputs and outputs as the DAG lists them, then
  // workspaces.
  std::vector<Buffer> buffers;
  std::vector<ProgramStage> stages;
  // Names of the instructions in the program, each one once.
  std::vector<std::string> instructions;
  // In the order in which they run.
  std::vector<Kernel> kernels;

  // Returns the number of leading buffers with scope kInput, kOutput or kWorkspace.
  int num_args() const;
};

// Append a variable or a buffer and return its number. If the name is taken, the separator and the
// lowest free number are appended to it.
int32_t AddVar(Program& program, std::string name, int64_t extent,
               std::string_view separator = "_");
int32_t AddBuffer(Program& program, Buffer buffer, std::string_view separator = "_");
// Returns the number of the instruction of this name, which is appended if it is new.
int32_t AddInstruction(Program& program, std::string_view name);

// Returns the load if `value` is a plain load, or a load guarded by conditions with 0 otherwise.
// Else returns null.
Expr CopiedLoad(Expr value);
// Returns true if a store of the value to shared memory can be an asynchronous copy: CopiedLoad
// must find a load from global memory.
bool IsCopyable(const Program& program, Expr value);

// Checks the structure: ids are in range, each variable is bound by one loop around its uses, each
// local buffer is allocated around its uses, accesses have the right number of indices, stores the
// right type, parallel loops are not nested, and an instruction's body is loops, conditions and
// stores. An error is a bug in the pass that made the program.
Status Verify(const Program& program);

// Returns true if names, types, structure and expressions are the same. The numbers of variables
// and of shared and local buffers may differ.
bool Equal(const Program& a, const Program& b);

}  // namespace kiln::ir
