// Random well-typed expressions for property tests, with every operator, literal edge cases and
// shared nodes.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/numbers/rng.h"
#include "compiler/ir/expr.h"

namespace kiln::ir {

struct RandomSlot {
  Type type;
  int rank;
};

// Variables 0..num_vars-1 are of kIndex. Divisors are positive constants, as expr.h demands.
class RandomExprs {
 public:
  RandomExprs(ExprPool& pool, Rng& rng, int num_vars, std::vector<RandomSlot> slots)
      : pool_(pool), rng_(rng), num_vars_(num_vars), slots_(std::move(slots)) {}

  Expr Make(Type type, int depth) {
    if (depth <= 0 || Chance(rng_, 0.1)) return Leaf(type);
    if (!made_.empty() && Chance(rng_, 0.05)) {
      Expr e = PickFrom(rng_, made_);
      if (e->type == type) return e;
    }
    Expr e = Inner(type, depth - 1);
    made_.push_back(e);
    return e;
  }

  Type AnyType() {
    static constexpr Type kAll[] = {kUInt8,   kInt16,    kUInt32,  kUInt64,     kBool,
                                    kInt8,    kInt32,    kInt64,   kFloat8E4M3, kFloat8E5M2,
                                    kFloat16, kBFloat16, kFloat32, kFloat64};
    return kAll[UniformInt(rng_, std::ssize(kAll))];
  }

 private:
  Expr Leaf(Type type) {
    if (type == kIndex && num_vars_ > 0 && Chance(rng_, 0.6)) {
      return pool_.Var(static_cast<int32_t>(UniformInt(rng_, num_vars_)));
    }
    if (type.is_float()) {
      static constexpr double kEdges[] = {0.0,     -0.0,   1.0, -1.0,  0.1,    1e-5, 3.0e38,  1e300,
                                          65504.0, 5e-324, 2.5, 1e-45, 123456, 1e10, -7.25e-3};
      if (Chance(rng_, 0.05)) return pool_.Float(std::numeric_limits<double>::infinity(), type);
      if (Chance(rng_, 0.05)) return pool_.Float(-std::numeric_limits<double>::infinity(), type);
      if (Chance(rng_, 0.05)) return pool_.Float(std::numeric_limits<double>::quiet_NaN(), type);
      if (Chance(rng_, 0.5)) return pool_.Float(kEdges[UniformInt(rng_, std::ssize(kEdges))], type);
      return pool_.Float((UniformReal(rng_) - 0.5) * 100, type);
    }
    if (Chance(rng_, 0.05)) return pool_.Int(std::numeric_limits<int64_t>::min(), type);
    if (Chance(rng_, 0.05)) return pool_.Int(static_cast<int64_t>(rng_()), type);
    return pool_.Int(UniformIn(rng_, -9, 9), type);
  }

  Expr Load(Type type, int depth) {
    for (int attempt = 0; attempt < 4 && !slots_.empty(); ++attempt) {
      const auto slot = UniformInt(rng_, std::ssize(slots_));
      const RandomSlot& info = slots_[slot];
      if (info.type != type) continue;
      std::vector<Expr> indices;
      for (int i = 0; i < info.rank; ++i) {
        indices.push_back(Make(Chance(rng_, 0.1) ? kInt32 : kIndex, depth));
      }
      return pool_.Load(static_cast<int32_t>(slot), indices, type);
    }
    return Leaf(type);
  }

  Expr Choice(Type type, int depth) {
    Expr c = Make(kBool, depth), a = Make(type, depth), b = Make(type, depth);
    return Chance(rng_, 0.5) ? pool_.Select(c, a, b) : pool_.If(c, a, b);
  }

  Expr Inner(Type type, int depth) {
    const auto kind = UniformInt(rng_, 10);
    if (kind == 0) return Choice(type, depth);
    if (kind == 1) return pool_.Cast(type, Make(AnyType(), depth));
    if (kind == 2) return Load(type, depth);
    if (type.is_bool()) return Condition(depth);
    if (type.is_float()) return Arithmetic(type, depth, kind);
    if (kind == 6) {
      const Op shift = Chance(rng_, 0.5) ? Op::kShl : Op::kShr;
      return pool_.Binary(shift, Make(type, depth), pool_.Int(UniformInt(rng_, 8), type));
    }
    static constexpr Op kOps[] = {Op::kAdd, Op::kSub,    Op::kMul,   Op::kMin,
                                  Op::kMax, Op::kBitAnd, Op::kBitOr, Op::kBitXor};
    if (kind == 3) {
      return pool_.FloorDiv(Make(type, depth), pool_.Int(UniformIn(rng_, 1, 9), type));
    }
    if (kind == 4) {
      return pool_.FloorMod(Make(type, depth), pool_.Int(UniformIn(rng_, 1, 9), type));
    }
    if (kind == 5) {
      const Expr args[] = {Make(type, depth)};
      return pool_.Call(Intrinsic::kAbs, args);
    }
    return pool_.Binary(kOps[UniformInt(rng_, 8)], Make(type, depth), Make(type, depth));
  }

  Expr Condition(int depth) {
    static constexpr Op kComparisons[] = {Op::kEq, Op::kNe, Op::kLt, Op::kLe, Op::kGt, Op::kGe};
    switch (UniformInt(rng_, 6)) {
      case 3: {
        static constexpr Op kBits[] = {Op::kBitAnd, Op::kBitOr, Op::kBitXor};
        return pool_.Binary(kBits[UniformInt(rng_, 3)], Make(kBool, depth), Make(kBool, depth));
      }
      case 0:
        return pool_.And(Make(kBool, depth), Make(kBool, depth));
      case 1:
        return pool_.Or(Make(kBool, depth), Make(kBool, depth));
      case 2:
        return pool_.Not(Make(kBool, depth));
      default: {
        const Type type = AnyType();
        return pool_.Binary(kComparisons[UniformInt(rng_, 6)], Make(type, depth),
                            Make(type, depth));
      }
    }
  }

  Expr Arithmetic(Type type, int depth, int64_t kind) {
    static constexpr Op kOps[] = {Op::kAdd,      Op::kSub,      Op::kMul, Op::kDiv,
                                  Op::kFloorDiv, Op::kFloorMod, Op::kMin, Op::kMax};
    if (kind == 3) {
      const auto intrinsic = static_cast<Intrinsic>(UniformInt(rng_, 16));
      std::vector<Expr> args;
      for (int i = 0; i < IntrinsicArity(intrinsic); ++i) args.push_back(Make(type, depth));
      return pool_.Call(intrinsic, args);
    }
    return pool_.Binary(kOps[UniformInt(rng_, 8)], Make(type, depth), Make(type, depth));
  }

  ExprPool& pool_;
  Rng& rng_;
  int num_vars_;
  std::vector<RandomSlot> slots_;
  std::vector<Expr> made_;
};

}  // namespace kiln::ir
