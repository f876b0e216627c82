// A program: loop nests over buffers, ready for code generation. What lowering makes, what features
// read, what code generators turn into LLVM IR or CUDA C, and what the program interpreter runs.
//
// Statements are immutable nodes in the program's ExprPool, like expressions. Loops run from 0 to
// extent-1; the extent is static. A loop's kind says how it is executed; the meaning is always that
// of the serial loop, except for bound (block, thread) loops, which all threads of a kernel share
// by kind.
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

#include "base/packing.h"
#include "compiler/ir/expr.h"
#include "compiler/ir/hints.h"

namespace kiln::ir {

enum class LoopKind : uint8_t {
  kSerial,
  kParallel,    // iterations on any CPU thread; only serial loops around it
  kVectorized,  // innermost axis of a vector; extent = lanes
  kUnrolled,
  kVThread,
  kBlockX,
  kBlockY,
  kBlockZ,
  kCluster,  // the blocks of a cluster
  kThreadX,
  kThreadY,
  kThreadZ,
};
std::string_view LoopKindName(LoopKind kind);  // "for", "parallel", "vectorize", "unroll",
                                               // "vthread", "blockIdx.x", "cluster", ...

enum class StmtKind : uint8_t {
  kFor,      // var, extent, loop_kind, body = children[0]
  kStore,    // buffers[slot][exprs[0..n-2]] = exprs[n-1]
  kIf,       // if exprs[0] then children[0]
  kSeq,      // children in order
  kAlloc,    // buffer `slot` exists inside children[0]; contents undefined at entry
  kBarrier,  // all threads of a block, of a cluster, or of each warp wait for each other; with
             // `pending` >= 0 each thread first waits for its asynchronous copies
  kCommit,   // the asynchronous stores since the last kCommit form a group; all threads reach it
};

struct StmtNode;
using Stmt = const StmtNode*;

struct StmtNode {
  StmtKind kind;
  LoopKind loop_kind = LoopKind::kSerial;
  // kStore: an asynchronous copy to shared memory. It may happen at any time until its thread has
  // waited for the copy's group at a barrier; the element is undefined before that.
  bool is_async = false;
  bool is_of_cluster = false;  // kBarrier
  // kBarrier: the threads of each warp, 32 that follow each other in the order x, y, z. All threads
  // of the block reach it.
  bool is_of_warp = false;
  int8_t pending =
      -1;  // kBarrier: the newest groups that need not be complete; -1: none is waited for
  int32_t var = -1;    // kFor
  int32_t slot = -1;   // kStore, kAlloc: index into Program::buffers
  int32_t stage = -1;  // kStore: index into Program::stages, whose computation this is
  int64_t extent = 0;  // kFor
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

// Makers. Nodes live in `pool`.
Stmt MakeFor(ExprPool& pool, int32_t var, int64_t extent, LoopKind kind, Stmt body);
Stmt MakeStore(ExprPool& pool, int32_t slot, int32_t stage, std::span<const Expr> indices,
               Expr value, bool is_async = false);
Stmt MakeIf(ExprPool& pool, Expr condition, Stmt then);
Stmt MakeSeq(ExprPool& pool, std::span<const Stmt> children);  // flattens; one child: that child
Stmt MakeAlloc(ExprPool& pool, int32_t slot, Stmt body);
Stmt MakeBarrier(ExprPool& pool, int pending = -1);
Stmt MakeClusterBarrier(ExprPool& pool);
Stmt MakeWarpBarrier(ExprPool& pool);
Stmt MakeCommit(ExprPool& pool);

enum class Scope : uint8_t {
  kInput,      // argument, read only
  kOutput,     // argument
  kWorkspace,  // whole intermediate tensor, an argument too; contents undefined at entry
  kShared,     // GPU: one per block
  // GPU: one per cluster of blocks. The first dimension is the block: each writes its own part,
  // which is in its shared memory, and reads all.
  kCluster,
  kLocal,  // per thread: registers or stack
};
std::string_view ScopeName(Scope scope);

struct Buffer {
  std::string name;  // unique in the program
  Type type;
  std::vector<int64_t> shape;  // row-major
  Scope scope = Scope::kWorkspace;
  int64_t index_limit = 0;  // input used as an index: its values lie in [0, index_limit); else 0
  // An input that the program takes packed; none: as it is. `shape` is that of the packed array.
  std::optional<Packing> packing = {};

  int64_t num_elements() const;
  int64_t bytes() const { return num_elements() * type.bytes(); }
};

struct LoopVar {
  std::string name;  // unique in the program
  int64_t extent;
};

// What a store belongs to: one stage of the schedule.
struct ProgramStage {
  std::string name;
  Hints hints = {};  // those of HintPlace::kStage
};

struct Kernel {
  std::string name;  // an identifier
  Stmt body;
  // GPU launch dimensions, 1 where nothing is bound. Where blocks form clusters the grid is one of
  // clusters: each of them is `cluster` blocks.
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> block = {1, 1, 1};
  int64_t cluster = 1;
  Hints hints = {};  // those of HintPlace::kKernel
};

// Value type; copies share the pool, whose nodes are immutable.
struct Program {
  std::shared_ptr<ExprPool> pool;
  std::vector<LoopVar> vars;
  std::vector<Buffer> buffers;  // arguments first, in call order: inputs and outputs as the DAG
                                // lists them, then workspaces
  std::vector<ProgramStage> stages;
  std::vector<Kernel> kernels;  // run in order

  int num_args() const;  // leading buffers with scope kInput, kOutput, kWorkspace
};

// Append a variable (a buffer) and return its number. If the name is taken, the separator and the
// lowest free number are appended to it.
int32_t AddVar(Program& program, std::string name, int64_t extent,
               std::string_view separator = "_");
int32_t AddBuffer(Program& program, Buffer buffer, std::string_view separator = "_");

// If `value` is a plain load, or a load guarded by conditions with 0 otherwise, returns that load;
// else null.
Expr CopiedLoad(Expr value);
// Can a store of the value to shared memory be an asynchronous copy? CopiedLoad must find a load
// from global memory.
bool IsCopyable(const Program& program, Expr value);

// Checks the structure: ids in range, each variable bound by one loop around its uses, each local
// buffer allocated around its uses, arity of accesses, types of stores, no nested parallel loop. An
// error is a bug in the pass that made the program.
Status Verify(const Program& program);

// The same program up to the numbers of variables and of shared and local buffers: names, types,
// structure, expressions.
bool Equal(const Program& a, const Program& b);

}  // namespace kiln::ir
