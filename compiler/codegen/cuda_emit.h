// The text of one CUDA kernel. Internal to cuda_*.cc.
//
//   * Addresses are flattened and simplified (compiler/arith/simplify.h); what is left of quotients
//     and remainders gets a name where its last variable is bound, outside the loops that use it.
//   * Index arithmetic is `int` wherever every intermediate value fits, proven node by node, and
//     `long long` elsewhere.
//   * Vectorized loops become vector loads and stores where lanes are proven to be consecutive and
//     aligned; otherwise they are unrolled loops.
//
// The kernel is emitted twice: the first pass finds the quotients to name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/arith/simplify.h"
#include "compiler/codegen/cuda_shared.h"
#include "compiler/codegen/cuda_source.h"
#include "compiler/codegen/cuda_unroll.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

// C++ identifiers, each once: "i.0" -> "i_0", and "i_0_1" when that is taken.
class CudaNames {
 public:
  CudaNames();
  std::string Unique(std::string_view name);

 private:
  std::set<std::string, std::less<>> used_;
};

// What the kernels of a program need above them.
struct CudaPreamble {
  bool half = false, bfloat = false, sigmoid = false, floor_div = false, floor_mod = false;
  bool async_copies = false, cluster = false;
  std::map<std::string, std::string> vector_types;  // name -> definition
};

std::string CudaTypeName(ir::Type type);  // in memory: "float", "__half", "signed char"

class CudaEmitter {
 public:
  CudaEmitter(const ir::Program& program, const ir::Kernel& kernel,
              const std::vector<std::string>& buffer_names,
              const std::vector<std::string>& var_names, CudaNames& names, CudaPreamble& preamble);

  // Statements of the kernel, indented by two.
  StatusOr<std::string> EmitBody(const SharedLayout& shared, bool is_dynamic);
  const UnrollPlan& unrolling() const { return unroll_; }

 private:
  // Text of an expression and how tightly it binds.
  enum Precedence : int {
    kTernary,
    kOr,
    kAnd,
    kEquality,
    kRelation,
    kSum,
    kProduct,
    kUnary,
    kPrimary
  };
  struct Text {
    std::string text;
    Precedence precedence = kPrimary;
    bool is_long = false;  // index arithmetic: long long, not int
  };
  // A quotient or remainder that may get a name.
  struct Named {
    int32_t var = -1;       // the innermost variable in it
    bool is_worth = false;  // used in a deeper loop, or twice
    bool is_long = false;
    std::string name;  // second pass
  };
  // Where an element is: its offset in the buffer, of a cluster's buffer in the part of this block.
  struct Place {
    arith::Linear offset;
    std::optional<arith::Linear> block;
  };
  // What is being emitted of a vectorized loop.
  struct Vector {
    int32_t var;
    int lanes;
    arith::Linear base;  // value of the variable in lane 0
  };

  // A loop whose products are summed four at a time.
  struct Dot {
    ir::Stmt store;
    ir::Expr a, b;  // loads
    Vector vector;
  };
  // A reduction over the threads of a block through a tree in shared memory.
  struct WarpReduction {
    std::vector<ir::Stmt> first, level;  // stores of the threads' own values, of the first level
    int32_t thread = -1;                 // variable
    int64_t threads = 0;
    size_t count = 0;  // statements
  };

  // cuda_stmt.cc
  void FindClusterVar(ir::Stmt stmt);
  void Emit(ir::Stmt stmt);
  std::string Coordinate(ir::LoopKind kind) const;
  void EmitFor(ir::Stmt loop);
  template <typename Body>
  void EmitLoop(int32_t var, int64_t extent, int64_t copies, Body&& body);
  void EmitIf(ir::Stmt stmt);
  void EmitStore(ir::Stmt store);
  bool EmitCopy(ir::Stmt store, const std::string& to, int lanes);
  void EmitShared(const SharedLayout& shared, bool is_dynamic);
  void EmitNamed(int32_t var);
  void EnterVar(int32_t var);
  void Line(std::string_view text);
  static std::string_view IndexTypeName(int64_t extent);
  void CommentStage(ir::Stmt stmt);

  // cuda_dot.cc
  bool EmitDotLoop(ir::Stmt loop);
  void EmitDotStore(ir::Stmt store);

  // cuda_warp_reduce.cc
  std::optional<WarpReduction> MatchWarpReduction(std::span<const ir::Stmt> stmts) const;
  bool MatchLevel(ir::Stmt stmt, int64_t half, WarpReduction& match) const;
  bool HasOtherUses(const WarpReduction& match, ir::Stmt reader) const;
  void FindWarpReductions(ir::Stmt stmt);
  bool IsInRegisters(int32_t slot) const;
  void EmitWarpReduction(const WarpReduction& reduction);
  void EmitShuffles(const WarpReduction& reduction, int64_t width);

  // cuda_vector.cc. False: nothing was emitted, the loop must be a loop.
  bool EmitVectorized(ir::Stmt loop);
  void EmitVectorBody(ir::Stmt body, const Vector& vector);
  void EmitLimited(ir::Stmt body, const Vector& vector);
  void EmitVectorStore(ir::Stmt store, const Vector& vector);
  bool CanVectorize(ir::Stmt body, const Vector& vector, bool must_store);
  std::optional<Vector> ChooseLanes(ir::Stmt loop);
  int32_t ChunkVar(int32_t var, int lanes, int64_t extent);
  void SetLane(const Vector& vector, int lane);
  std::optional<Place> VectorPlace(int32_t slot, std::span<const ir::Expr> indices,
                                   const Vector& vector);
  bool IsUniform(ir::Expr condition, const Vector& vector);
  static bool IsLimit(ir::Expr condition, const Vector& vector);
  bool IsVectorValue(ir::Expr e, const Vector& vector);
  std::string VectorValue(ir::Expr e, const Vector& vector);
  // The largest parts of e that are read whatever the lanes hold and that are vector values.
  void FindVectorValues(ir::Expr e, const Vector& vector, std::vector<ir::Expr>& found,
                        bool loads_only = false);
  std::string VectorTypeName(ir::Type type, int lanes);
  static std::string LaneName(ir::Type type, int lane);
  std::string VectorElement(int32_t slot, const Place& place, int lanes, bool is_load);
  int64_t MultipleOf(const arith::Linear& e);
  int64_t MultipleOf(ir::Expr e);

  // cuda_expr.cc
  ir::Expr Simplify(ir::Expr e);
  // Each part of a && b knows what those before it say.
  ir::Expr SimplifyCondition(ir::Expr condition);
  arith::Linear ToLinear(ir::Expr e);
  ir::Expr KeepLane(ir::Expr load);
  Text Print(ir::Expr e);            // of the program
  Text PrintSimplified(ir::Expr e);  // of the simplifier
  Text PrintRaw(ir::Expr e);         // as it is in memory
  Text PrintConstant(ir::Expr e);
  Text PrintBinary(ir::Expr e);
  Text PrintIndexBinary(ir::Expr e, Text a, Text b);
  Text PrintMinMax(ir::Expr e, const Text& a, const Text& b);
  Text PrintDivision(ir::Expr e);
  Text PrintNamed(ir::Expr e);
  Text PrintLogic(ir::Expr e);
  Text PrintChoice(ir::Expr e);
  Text PrintCast(ir::Expr e);
  Text PrintCall(ir::Expr e);
  Text PrintLoad(ir::Expr e);
  Text FromMemory(ir::Type type, int64_t index_limit, const std::string& raw);
  std::string ToMemory(ir::Type type, const Text& value);
  Text Child(ir::Expr e);
  void NameQuotient(ir::Expr e);
  std::string Element(int32_t slot, const Place& place);  // name[offset]
  Place PlaceOf(int32_t slot, std::span<const ir::Expr> indices);
  arith::Interval RangeOf(ir::Expr e);
  static std::string Wrap(const Text& text, Precedence at_least);

  const ir::Buffer& buffer(int32_t slot) const {
    return program_.buffers[static_cast<size_t>(slot)];
  }

  const ir::Program& program_;
  const ir::Kernel& kernel_;
  const std::vector<std::string>& buffer_names_;
  std::vector<std::string> var_names_;  // of the simplifier's variables: the program's, then chunks
  CudaNames& names_;
  CudaPreamble& preamble_;

  ir::ExprPool pool_;
  arith::Simplifier simplifier_{pool_};
  std::vector<arith::Linear> env_;  // what each variable of the program or chunk stands for
  std::unordered_map<int32_t, std::map<int, int32_t>> chunk_vars_;  // loop, lanes -> variable

  bool is_first_pass_ = true;
  std::unordered_map<ir::Expr, Named> named_;
  std::vector<ir::Expr> named_order_;
  std::unordered_map<int32_t, int> depth_of_var_;         // of the enclosing loops
  std::unordered_map<int32_t, int> serial_depth_of_var_;  // real loops around and including it
  int depth_ = 0;
  int serial_depth_ = 0;

  std::vector<std::pair<ir::Expr, std::string>> vectors_;  // loaded already: the vector's name
  std::unordered_map<ir::Expr, std::string> lanes_;        // of them, the current lane: raw text
  std::optional<Dot> dot_;
  std::set<int32_t> cluster_vars_;                     // variables
  std::set<int32_t> thread_x_;                         // variables
  std::map<ir::Stmt, WarpReduction> warp_reductions_;  // by their first statement
  std::map<int32_t, std::string> in_registers_;        // shared buffers that became variables
  std::string out_;
  int indent_ = 1;
  int32_t stage_ = -1;  // of the last comment
  // Barriers of the cluster emitted so far; after which of them the kernel ends, -1: none.
  int cluster_barriers_ = 0, last_cluster_barrier_ = -1;
  UnrollPlan unroll_;
  int64_t budget_ = 0;  // of expression nodes
};

// ---- implementation of templates

// for (int name = 0; ...) { body() }; copies: as in UnrollPlan, 0 leaves it to the compiler.
template <typename Body>
void CudaEmitter::EmitLoop(int32_t var, int64_t extent, int64_t copies, Body&& body) {
  const std::string& name = var_names_[static_cast<size_t>(var)];
  if (copies == extent) Line("#pragma unroll");
  if (copies > 0 && copies < extent) Line(fmt::format("#pragma unroll {}", copies));
  Line(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1}) {{", IndexTypeName(extent), name, extent));
  ++indent_, ++depth_, ++serial_depth_;
  EnterVar(var);
  body();
  --indent_, --depth_, --serial_depth_;
  Line("}");
}

}  // namespace kiln::codegen
