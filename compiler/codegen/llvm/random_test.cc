// Random programs with every loop kind, index pattern, type and condition, against the reference.
// Values are small whole numbers, so that results are exact whatever is fused.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "base/status_testing.h"
#include "compiler/codegen/llvm/reference_testing.h"
#include "compiler/codegen/program_builder_testing.h"

namespace kiln::codegen {
namespace {
using ir::Expr;
using ir::LoopKind;
using ir::Op;
using ir::Stmt;

constexpr int64_t kInputSize = 1024;

class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : rng_(seed) {}

  const ir::Program& Make() {
    type_ = Pick<ir::Type>({ir::kFloat32, ir::kFloat32, ir::kFloat32, ir::kFloat64, ir::kInt32,
                            ir::kInt64, ir::kInt8, ir::kFloat16, ir::kBFloat16, ir::kFloat8E4M3,
                            ir::kFloat8E5M2, ir::kUInt8, ir::kInt16, ir::kUInt32, ir::kUInt64});
    const size_t num_vars = 1 + Below(4);
    std::vector<int64_t> shape;
    for (size_t i = 0; i < num_vars; ++i) {
      const int64_t extent =
          Pick<int64_t>(num_vars > 2 ? std::vector<int64_t>{1, 2, 3, 4, 5, 7, 8, 12}
                                     : std::vector<int64_t>{1, 3, 7, 8, 16, 17, 28, 33, 64, 100});
      vars_.push_back(b_.Var("v" + std::to_string(i), extent));
      extents_.push_back(extent);
      in_store_.push_back(i == 0 || Below(3) != 0);
    }
    A_ = b_.Buffer("A", ir::Scope::kInput, {kInputSize}, type_);
    B_ = b_.Buffer("B", ir::Scope::kInput, {32, 32}, type_);
    I_ = b_.Buffer("I", ir::Scope::kInput, {kInputSize}, ir::kInt32);
    MakeStoreIndex();
    C_ = b_.Buffer("C", ir::Scope::kOutput, shape_, type_);
    const bool local = Below(3) == 0;
    const int target = local ? b_.Buffer("L", ir::Scope::kLocal, shape_, type_) : C_;
    Stmt body =
        b_.Store(target, index_, b_.pool().Binary(Op::kAdd, b_.Load(target, index_), Value(3)));
    if (Below(3) == 0)
      body = b_.Seq(
          {body, b_.Store(target, index_, b_.pool().Min(b_.Load(target, index_), Value(2)))});
    if (Below(3) == 0) body = b_.If(Condition(), body);
    const std::vector<size_t> order = RandomOrder();
    Stmt nest = body;
    bool vectorized = false;
    for (size_t i = order.size(); i-- > 0;) {
      LoopKind kind = Kind(order[i], !local && i == 0);
      if (kind == LoopKind::kVectorized && std::exchange(vectorized, true))
        kind = LoopKind::kSerial;
      nest = b_.For(vars_[order[i]], kind, nest);
    }
    nest = b_.Seq({Over("init", [&](auto at) { return b_.Store(target, at, Constant(1)); }), nest});
    if (local) {
      nest = b_.Alloc(target, b_.Seq({nest, Over("out", [&](auto at) {
                                        return b_.Store(C_, at, b_.Load(target, at));
                                      })}));
    }
    b_.Kernel("random", nest);
    program_ = b_.program();
    program_.buffers[static_cast<size_t>(I_)].index_limit = kInputSize;
    return program_;
  }

 private:
  uint64_t Below(uint64_t n) { return rng_() % n; }
  template <typename T>
  T Pick(const std::vector<T>& items) {
    return items[Below(items.size())];
  }
  ir::ExprPool& pool() { return b_.pool(); }

  std::vector<size_t> RandomOrder() {
    std::vector<size_t> order(vars_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), rng_);
    return order;
  }

  LoopKind Kind(size_t var, bool outermost) {
    if (outermost && in_store_[var] && Below(3) == 0) return LoopKind::kParallel;
    return Pick<LoopKind>(
        {LoopKind::kSerial, LoopKind::kUnrolled, LoopKind::kVectorized, LoopKind::kVectorized});
  }

  // Makes an index that is one to one in the variables of the store: separate dimensions in a
  // random order, or all in one, or split by quotient and remainder.
  void MakeStoreIndex() {
    std::vector<size_t> order;
    for (size_t i : RandomOrder()) {
      if (in_store_[i]) order.push_back(i);
    }
    for (size_t i : order) {
      shape_.push_back(extents_[i]);
      index_.push_back(vars_[i]);
    }
    if (Below(3) != 0) return;
    Expr flat = b_.Int(0);
    int64_t size = 1;
    for (size_t i : order) {
      flat = b_.Add(b_.Mul(flat, extents_[i]), vars_[i]);
      size *= extents_[i];
    }
    shape_ = {size};
    index_ = {flat};
    if (Below(2) == 0) {
      const int64_t cut = Pick<int64_t>({2, 4, 5, 16});
      shape_ = {(size + cut - 1) / cut, cut};
      index_ = {pool().FloorDiv(flat, b_.Int(cut)), pool().FloorMod(flat, b_.Int(cut))};
    }
  }

  template <typename Body>
  Stmt Over(const std::string& name, Body body) {
    std::vector<Expr> at;
    for (size_t d = 0; d < shape_.size(); ++d)
      at.push_back(b_.Var(name + std::to_string(d), shape_[d]));
    Stmt nest = body(at);
    for (size_t d = shape_.size(); d-- > 0;) {
      nest = b_.For(
          at[d],
          d + 1 == shape_.size() && Below(2) == 0 ? LoopKind::kVectorized : LoopKind::kSerial,
          nest);
    }
    return nest;
  }

  Expr Constant(int64_t v) {
    return type_.is_float() ? pool().Float(static_cast<double>(v), type_) : pool().Int(v, type_);
  }

  // Returns an index that is not negative and below 600.
  Expr Affine() {
    Expr sum = b_.Int(static_cast<int64_t>(Below(9)));
    for (size_t i = 0; i < vars_.size(); ++i) {
      if (Below(3) != 0) sum = b_.Add(sum, b_.Mul(vars_[i], Pick<int64_t>({1, 1, 1, 2, 3})));
    }
    return sum;
  }

  Expr Index() {
    switch (Below(6)) {
      case 0:
        return pool().FloorDiv(Affine(), b_.Int(Pick<int64_t>({2, 3, 4, 7})));
      case 1:
        return pool().FloorMod(pool().Sub(Affine(), b_.Int(40)),
                               b_.Int(Pick<int64_t>({4, 5, 16, 1000})));
      case 2:
        return pool().Sub(b_.Int(700), Affine());
      case 3:
        return pool().Max(pool().Sub(Affine(), b_.Int(5)), b_.Int(0));
      default:
        return Affine();
    }
  }

  Expr Condition() {
    Expr a = Affine(), limit = b_.Int(static_cast<int64_t>(Below(30)));
    Expr condition = Below(2) == 0 ? pool().Lt(a, limit) : pool().Ge(a, limit);
    switch (Below(4)) {
      case 0:
        return pool().And(condition, pool().Lt(Index(), Index()));
      case 1:
        return pool().Or(condition, pool().Eq(pool().FloorMod(Affine(), b_.Int(3)), b_.Int(1)));
      case 2:
        // The second part has a load, which may not be evaluated if the first part is false.
        return pool().And(pool().Lt(Index(), b_.Int(300)),
                          pool().Ge(b_.Load(A_, {Affine()}), Constant(0)));
      default:
        return condition;
    }
  }
  Expr Value(int depth) {
    if (depth == 0) return b_.Load(A_, {Index()});
    switch (Below(10)) {
      case 0:
        return b_.Load(A_, {Index()});
      case 1:
        return b_.Load(
            B_, {pool().FloorMod(Affine(), b_.Int(32)), pool().FloorMod(Affine(), b_.Int(32))});
      case 2:
        return b_.Load(A_, {pool().Cast(ir::kIndex, b_.Load(I_, {Index()}))});
      case 3:
        return b_.Mul(Value(depth - 1), Value(0));
      case 4:
        return pool().Max(Value(depth - 1), Value(depth - 1));
      // Reads outside of the buffer are guarded.
      case 5: {
        const Expr at = pool().Sub(Affine(), b_.Int(Pick<int64_t>({3, 20, 60})));
        return pool().If(pool().Ge(at, b_.Int(0)), b_.Load(A_, {at}), Value(depth - 1));
      }
      case 6:
        return pool().Select(Condition(), Value(depth - 1), Value(depth - 1));
      case 7:
        return pool().If(Condition(), Value(depth - 1), Constant(2));
      case 8:
        return pool().Cast(type_, pool().Binary(Op::kMin, Index(), b_.Int(5)));
      default:
        if (type_.is_int() && Below(2) == 0) {
          const Op op = Pick<Op>({Op::kBitAnd, Op::kBitOr, Op::kBitXor, Op::kShl, Op::kShr});
          const bool shifts = op == Op::kShl || op == Op::kShr;
          return pool().Binary(
              op, Value(depth - 1),
              shifts ? Constant(static_cast<int64_t>(Below(8))) : Value(depth - 1));
        }
        return pool().Sub(Value(depth - 1), Value(depth - 1));
    }
  }

  std::mt19937_64 rng_;
  ProgramBuilder b_;
  ir::Program program_;
  ir::Type type_;
  int A_ = 0, B_ = 0, I_ = 0, C_ = 0;
  std::vector<Expr> vars_;
  std::vector<int64_t> extents_;
  std::vector<bool> in_store_;
  std::vector<int64_t> shape_;
  std::vector<Expr> index_;
};

uint64_t FirstSeed() {
  const char* seed = std::getenv("KILN_TEST_SEED");
  return seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10);
}

// KILN_TEST_COUNT is a percentage of the usual number.
uint64_t Scaled(uint64_t count) {
  const char* percent = std::getenv("KILN_TEST_COUNT");
  return percent == nullptr ? count : count * std::strtoull(percent, nullptr, 10) / 100;
}

void RunSeeds(uint64_t count, const target::Target& target) {
  for (uint64_t seed = FirstSeed(); seed < FirstSeed() + Scaled(count); ++seed) {
    RandomProgram random(seed);
    const ir::Program& program = random.Make();
    const Status status = CompareWithReference(program, seed, 0, target);
    ASSERT_TRUE(status.ok()) << "KILN_TEST_SEED=" << seed << ": " << Message(status) << "\n"
                             << PrintLlvmIr(program, target, {.optimize = false}).value_or("");
  }
}

TEST(LlvmRandomTest, ThisMachine) { RunSeeds(80, {}); }

TEST(LlvmRandomTest, Avx2) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2 here";
  RunSeeds(30, {.kind = &target::kLlvm, .options = {{"mcpu", "x86-64-v3"}}});
}

TEST(LlvmRandomTest, OldestMachine) {
  RunSeeds(30, {.kind = &target::kLlvm, .options = {{"mcpu", "x86-64"}}});
}
}  // namespace
}  // namespace kiln::codegen
