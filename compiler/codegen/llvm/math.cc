#include "compiler/codegen/llvm/math.h"

#include <llvm/IR/Intrinsics.h>

#include <initializer_list>
#include <string>

#include "base/status.h"

namespace kiln::codegen {
namespace {
using ir::Intrinsic;
using llvm::Value;

// Emits into one function over type() = float or <n x float>.
class MathBuilder {
 public:
  MathBuilder(llvm::IRBuilderBase& builder, llvm::Type* type)
      : b_(builder), type_(type), int_type_(type->getWithNewType(builder.getInt32Ty())) {}

  Value* F(double v) { return llvm::ConstantFP::get(type_, v); }
  Value* I(int32_t v) { return llvm::ConstantInt::getSigned(int_type_, v); }
  Value* Infinity(bool negative = false) { return llvm::ConstantFP::getInfinity(type_, negative); }
  Value* Fma(Value* a, Value* b, Value* c) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {type_}, {a, b, c});
  }
  Value* Abs(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value* CopySign(Value* x, Value* sign) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, sign);
  }
  Value* Bits(Value* x) { return b_.CreateBitCast(x, int_type_); }
  Value* FromBits(Value* x) { return b_.CreateBitCast(x, type_); }
  // Both functions return NaN for NaN.
  Value* AtMost(Value* x, double limit) {
    return b_.CreateSelect(b_.CreateFCmpOGT(x, F(limit)), F(limit), x);
  }
  Value* AtLeast(Value* x, double limit) {
    return b_.CreateSelect(b_.CreateFCmpOLT(x, F(limit)), F(limit), x);
  }
  // Evaluates by Horner's method, highest power first.
  Value* Polynomial(Value* x, std::initializer_list<double> coefficients) {
    Value* sum = nullptr;
    for (double c : coefficients) sum = sum == nullptr ? F(c) : Fma(sum, x, F(c));
    return sum;
  }
  // Returns 2^n for integers n in [-126, 127], as a float.
  Value* PowerOfTwo(Value* n) { return FromBits(b_.CreateShl(b_.CreateAdd(n, I(127)), I(23))); }

  // x = n * ln 2 + r with |r| <= 0.35; e^r - 1 = r + r^2 * polynomial (Cephes).
  struct Reduced {
    // An int.
    Value* n;
    // e^r - 1
    Value* exp_r_less1;
  };
  Reduced ReduceExp(Value* x) {
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
    Value* shifted = Fma(x, F(0x1.715476p+0), F(0x1.8p23));
    Value* n = b_.CreateSub(Bits(shifted), I(0x4b400000));
    Value* n_float = b_.CreateFSub(shifted, F(0x1.8p23));
    // The leading 15 bits of ln 2, whose product is exact.
    Value* r = Fma(n_float, F(-0x1.62e400p-1), x);
    // The remaining bits of ln 2.
    r = Fma(n_float, F(-0x1.7f7d1cp-20), r);
    return {n, ExpLess1(r)};
  }

  // Returns e^r - 1 for |r| <= 0.35.
  Value* ExpLess1(Value* r) {
    Value* q = Polynomial(r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
                              1.6666665459e-1, 5.0000001201e-1});
    return Fma(q, b_.CreateFMul(r, r), r);
  }

  // Computes y * 2^n with two factors, because 2^128 is no float, and neither is a factor that
  // leads to denormals.
  Value* Scale(Value* y, Value* n) {
    Value* half = b_.CreateAShr(n, I(1));
    y = b_.CreateFMul(y, PowerOfTwo(half));
    return b_.CreateFMul(y, PowerOfTwo(b_.CreateSub(n, half)));
  }

  Value* Exp(Value* x) {
    // At these ends the results are infinity and 0 without further tests.
    x = AtLeast(AtMost(x, 89.0), -104.0);
    const Reduced e = ReduceExp(x);
    return Scale(b_.CreateFAdd(e.exp_r_less1, F(1.0)), e.n);
  }

  // 2^x = 2^n * e^(f * ln 2) with x = n + f, |f| <= 1/2, exactly.
  Value* Exp2(Value* x) {
    x = AtLeast(AtMost(x, 129.0), -151.0);
    Value* shifted = b_.CreateFAdd(x, F(0x1.8p23));
    Value* n = b_.CreateSub(Bits(shifted), I(0x4b400000));
    Value* f = b_.CreateFSub(x, b_.CreateFSub(shifted, F(0x1.8p23)));
    Value* less1 = ExpLess1(b_.CreateFMul(f, F(0x1.62e42fefa39efp-1)));
    return Scale(b_.CreateFAdd(less1, F(1.0)), n);
  }

  Value* Sigmoid(Value* x) {
    // Uses e^-|x|, so that small results keep their digits.
    Value* z = Exp(b_.CreateFNeg(Abs(x)));
    Value* numerator = b_.CreateSelect(b_.CreateFCmpOLT(x, F(0.0)), z, F(1.0));
    return b_.CreateFDiv(numerator, b_.CreateFAdd(F(1.0), z));
  }

  Value* Tanh(Value* x) {
    // tanh y = m / (m + 2), m = e^2y - 1.
    Value* y = AtMost(Abs(x), 20.0);
    const Reduced e = ReduceExp(b_.CreateFAdd(y, y));
    Value* scale = PowerOfTwo(e.n);
    Value* m = Fma(scale, e.exp_r_less1, b_.CreateFSub(scale, F(1.0)));
    return CopySign(b_.CreateFDiv(m, b_.CreateFAdd(m, F(2.0))), x);
  }

  Value* Log(Value* x) {
    Value* tiny = b_.CreateFCmpOLT(x, F(0x1p-126));
    Value* scaled = b_.CreateSelect(tiny, b_.CreateFMul(x, F(0x1p23)), x);
    // scaled = 2^e * m with m in [sqrt 1/2, sqrt 2).
    Value* e = b_.CreateAShr(b_.CreateSub(Bits(scaled), I(0x3f3504f3)), I(23));
    Value* m = FromBits(b_.CreateSub(Bits(scaled), b_.CreateShl(e, I(23))));
    Value* e_float = b_.CreateSIToFP(e, type_);
    e_float = b_.CreateFAdd(e_float, b_.CreateSelect(tiny, F(-23.0), F(0.0)));
    Value* f = b_.CreateFSub(m, F(1.0));
    Value* f2 = b_.CreateFMul(f, f);
    // log(1 + f) = f - f^2/2 + f^3 * polynomial (Cephes).
    Value* p = Polynomial(
        f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
            -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
    Value* y = b_.CreateFMul(b_.CreateFMul(p, f), f2);
    y = Fma(e_float, F(-2.12194440e-4), y);
    y = Fma(f2, F(-0.5), y);
    y = b_.CreateFAdd(f, y);
    y = Fma(e_float, F(0.693359375), y);
    Value* infinity = Infinity();
    y = b_.CreateSelect(b_.CreateFCmpOEQ(x, infinity), infinity, y);
    y = b_.CreateSelect(b_.CreateFCmpOEQ(x, F(0.0)), Infinity(true), y);
    return b_.CreateSelect(b_.CreateFCmpULT(x, F(0.0)), llvm::ConstantFP::getNaN(type_), y);
  }

  // Powers of two have exact results, whatever remains of the logarithm to base e.
  Value* Log2(Value* x) {
    Value* tiny = b_.CreateFCmpOLT(x, F(0x1p-126));
    Value* scaled = b_.CreateSelect(tiny, b_.CreateFMul(x, F(0x1p23)), x);
    Value* e = b_.CreateAShr(b_.CreateSub(Bits(scaled), I(0x3f3504f3)), I(23));
    Value* m = FromBits(b_.CreateSub(Bits(scaled), b_.CreateShl(e, I(23))));
    Value* e_float =
        b_.CreateFAdd(b_.CreateSIToFP(e, type_), b_.CreateSelect(tiny, F(-23.0), F(0.0)));
    Value* y = Fma(Log(m), F(0x1.71547652b82fep+0), e_float);
    Value* infinity = Infinity();
    y = b_.CreateSelect(b_.CreateFCmpOEQ(x, infinity), infinity, y);
    y = b_.CreateSelect(b_.CreateFCmpOEQ(x, F(0.0)), Infinity(true), y);
    return b_.CreateSelect(b_.CreateFCmpULT(x, F(0.0)), llvm::ConstantFP::getNaN(type_), y);
  }

  Value* Erf(Value* x) {
    Value* t = AtMost(Abs(x), 10.0);
    Value* s = b_.CreateFMul(t, t);
    // Near 0: x + x * P(x^2). Further out: 1 - exp(polynomial in |x|).
    Value* near = Polynomial(s, {-0x1.38e000p-11, 0x1.471a58p-8, -0x1.b691b2p-6, 0x1.ce1c44p-4,
                                 -0x1.812700p-2, 0x1.06eba8p-3});
    near = Fma(near, x, x);
    Value* r = Polynomial(t, {-0x1.220000p-16, 0x1.91cfb2p-12});
    Value* u = Polynomial(t, {-0x1.fd1438p-9, 0x1.8d6342p-6});
    r = Fma(r, s, u);
    for (double c : {-0x1.b55cb8p-4, -0x1.450aa0p-1, -0x1.079d0cp-3}) r = Fma(r, t, F(c));
    r = Fma(r, t, b_.CreateFNeg(t));
    Value* far = CopySign(b_.CreateFSub(F(1.0), Exp(r)), x);
    return b_.CreateSelect(b_.CreateFCmpOGT(t, F(0.927734375)), far, near);
  }

  Value* Emit(Intrinsic intrinsic, Value* x) {
    switch (intrinsic) {
      case Intrinsic::kExp:
        return Exp(x);
      case Intrinsic::kLog:
        return Log(x);
      case Intrinsic::kTanh:
        return Tanh(x);
      case Intrinsic::kSigmoid:
        return Sigmoid(x);
      case Intrinsic::kErf:
        return Erf(x);
      case Intrinsic::kExp2:
        return Exp2(x);
      case Intrinsic::kLog2:
        return Log2(x);
      default:
        break;
    }
    KILN_CHECK(false, "no inline code for '{}'", ir::IntrinsicName(intrinsic));
    return nullptr;
  }

 private:
  llvm::IRBuilderBase& b_;
  llvm::Type* type_;
  llvm::Type* int_type_;
};

std::string FunctionName(Intrinsic intrinsic, llvm::Type* type) {
  std::string name = "kiln." + std::string(ir::IntrinsicName(intrinsic)) + ".";
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
    name += "v" + std::to_string(vector->getNumElements());
  }
  return name + "f32";
}

llvm::Function* MakeFunction(llvm::Module& module, Intrinsic intrinsic, llvm::Type* type,
                             const std::string& name) {
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {type}, false),
                                          llvm::Function::InternalLinkage, name, module);
  function->addFnAttr(llvm::Attribute::AlwaysInline);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(module.getContext(), "entry", function));
  Value* x = function->getArg(0);
  x->setName("x");
  builder.CreateRet(MathBuilder(builder, type).Emit(intrinsic, x));
  return function;
}
}  // namespace

bool HasInlineMath(Intrinsic intrinsic) {
  switch (intrinsic) {
    case Intrinsic::kExp:
    case Intrinsic::kLog:
    case Intrinsic::kTanh:
    case Intrinsic::kSigmoid:
    case Intrinsic::kErf:
    case Intrinsic::kExp2:
    case Intrinsic::kLog2:
      return true;
    default:
      return false;
  }
}

Value* CallInlineMath(llvm::IRBuilderBase& builder, llvm::Module& module, Intrinsic intrinsic,
                      Value* x) {
  const std::string name = FunctionName(intrinsic, x->getType());
  llvm::Function* function = module.getFunction(name);
  if (function == nullptr) function = MakeFunction(module, intrinsic, x->getType(), name);
  return builder.CreateCall(function, {x});
}

}  // namespace kiln::codegen
