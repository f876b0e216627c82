// Tests the accuracy of the inline math against double precision, on floats of every exponent, and
// on special values.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "base/status_testing.h"
#include "compiler/codegen/llvm/llvm.h"
#include "compiler/codegen/llvm/loaded_program_testing.h"
#include "compiler/codegen/llvm/reference_testing.h"
#include "compiler/codegen/program_builder_testing.h"

namespace kiln::codegen {
namespace {
using ir::Intrinsic;
using ir::LoopKind;

constexpr int64_t kCount = 1 << 14;

// Compiles y[i] = f(x[i]) for all i, in vectors or one by one.
StatusOr<LoadedProgram> CompileUnary(Intrinsic intrinsic, LoopKind kind, const std::string& cpu) {
  ProgramBuilder b;
  const int X = b.Buffer("x", ir::Scope::kInput, {kCount});
  const int Y = b.Buffer("y", ir::Scope::kOutput, {kCount});
  const ir::Expr i = b.Var("i", kCount / 16), v = b.Var("v", 16);
  const ir::Expr at = b.Add(b.Mul(i, 16), v);
  b.Kernel("unary", b.For(i, LoopKind::kSerial,
                          b.For(v, kind, b.Store(Y, {at}, b.Call(intrinsic, {b.Load(X, {at})})))));
  target::Target target;
  if (!cpu.empty()) target.options["mcpu"] = cpu;
  KILN_ASSIGN_OR_RETURN(const Compiled compiled, CompileLlvm(b.program(), target));
  return LoadedProgram::Load(compiled.binary);
}

// Returns |y - exact| in units of the last place of a float near exact.
double Ulps(float y, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(y) ? 0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(y)) return y == rounded ? 0 : INFINITY;
  const int exponent =
      std::max(std::ilogb(static_cast<float>(exact) == 0 ? 1e-45f : rounded), -126);
  return std::abs(static_cast<double>(y) - exact) / std::ldexp(1.0, exponent - 23);
}

struct Accuracy {
  Intrinsic intrinsic;
  std::function<double(double)> exact;
  double max_ulps;
};

void PrintTo(const Accuracy& a, std::ostream* out) { *out << ir::IntrinsicName(a.intrinsic); }

class LlvmMathTest : public testing::TestWithParam<Accuracy> {
 protected:
  // Takes every 2^32 / (kCount * batches)-th float, including all signs, exponents, infinities,
  // NaNs and denormals.
  void CheckAllExponents(const LoadedProgram& program, int batches) {
    GuardedBytes x(kCount * 4), y(kCount * 4);
    double worst = 0;
    float worst_at = 0;
    const uint32_t step = static_cast<uint32_t>(
        (1ull << 32) / (static_cast<uint64_t>(kCount) * static_cast<uint64_t>(batches)));
    uint32_t bits = 0;
    for (int batch = 0; batch < batches; ++batch) {
      for (int64_t i = 0; i < kCount; ++i, bits += step)
        x.as<float>()[i] = std::bit_cast<float>(bits);
      program.Run({x.data(), y.data()});
      for (int64_t i = 0; i < kCount; ++i) {
        const float in = x.as<float>()[i];
        const double ulps = Ulps(y.as<float>()[i], GetParam().exact(in));
        if (!(ulps <= worst)) {
          worst = ulps;
          worst_at = in;
        }
      }
    }
    RecordProperty("worst_ulps", std::to_string(worst));
    EXPECT_LE(worst, GetParam().max_ulps) << "at " << fmt::format("{:a}", worst_at);
    std::printf("%s: %.3f ulp at %a\n",
                std::string(ir::IntrinsicName(GetParam().intrinsic)).c_str(), worst, worst_at);
  }
};

TEST_P(LlvmMathTest, VectorsAreAccurate) {
  ASSERT_OK_AND_ASSIGN(const LoadedProgram program,
                       CompileUnary(GetParam().intrinsic, LoopKind::kVectorized, ""));
  CheckAllExponents(program, 200);
}

TEST_P(LlvmMathTest, WithoutFusedMultiplyAddToo) {
  ASSERT_OK_AND_ASSIGN(const LoadedProgram program,
                       CompileUnary(GetParam().intrinsic, LoopKind::kVectorized, "x86-64"));
  CheckAllExponents(program, 50);
}

TEST_P(LlvmMathTest, ScalarsGiveTheSameBits) {
  ASSERT_OK_AND_ASSIGN(const LoadedProgram vectors,
                       CompileUnary(GetParam().intrinsic, LoopKind::kVectorized, ""));
  ASSERT_OK_AND_ASSIGN(const LoadedProgram scalars,
                       CompileUnary(GetParam().intrinsic, LoopKind::kSerial, ""));
  GuardedBytes x(kCount * 4), y(kCount * 4), z(kCount * 4);
  for (int64_t i = 0; i < kCount; ++i)
    x.as<float>()[i] = static_cast<float>(i - kCount / 2) * (90.0f / (kCount / 2));
  vectors.Run({x.data(), y.data()});
  scalars.Run({x.data(), z.data()});
  for (int64_t i = 0; i < kCount; ++i) {
    const float a = y.as<float>()[i], b = z.as<float>()[i];
    ASSERT_TRUE(std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
                (std::isnan(a) && std::isnan(b)))
        << x.as<float>()[i] << ": " << a << " " << b;
  }
}

TEST_P(LlvmMathTest, SpecialValues) {
  ASSERT_OK_AND_ASSIGN(const LoadedProgram program,
                       CompileUnary(GetParam().intrinsic, LoopKind::kVectorized, ""));
  using Limits = std::numeric_limits<float>;
  const std::vector<float> values = {0.0f,
                                     -0.0f,
                                     Limits::infinity(),
                                     -Limits::infinity(),
                                     Limits::quiet_NaN(),
                                     Limits::denorm_min(),
                                     -Limits::denorm_min(),
                                     Limits::min(),
                                     Limits::max(),
                                     Limits::lowest(),
                                     1.0f,
                                     -1.0f,
                                     88.72283f,
                                     88.72284f,
                                     -87.33655f,
                                     -103.97f,
                                     -104.5f};
  GuardedBytes x(kCount * 4), y(kCount * 4);
  std::memcpy(x.data(), values.data(), values.size() * 4);
  program.Run({x.data(), y.data()});
  for (size_t i = 0; i < values.size(); ++i) {
    const double exact = GetParam().exact(values[i]);
    EXPECT_LE(Ulps(y.as<float>()[i], exact), GetParam().max_ulps)
        << "at " << values[i] << ": " << y.as<float>()[i];
    if (exact == 0) {
      EXPECT_EQ(std::signbit(y.as<float>()[i]), std::signbit(exact)) << "at " << values[i];
    }
  }
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Log(double x) { return std::log(x); }
double Exp(double x) { return std::exp(x); }
double Tanh(double x) { return std::tanh(x); }
double Erf(double x) { return std::erf(x); }
double Exp2(double x) { return std::exp2(x); }
double Log2(double x) { return std::log2(x); }

INSTANTIATE_TEST_SUITE_P(
    Functions, LlvmMathTest,
    testing::Values(Accuracy{Intrinsic::kExp, Exp, 2}, Accuracy{Intrinsic::kExp2, Exp2, 2},
                    Accuracy{Intrinsic::kLog2, Log2, 3}, Accuracy{Intrinsic::kLog, Log, 2},
                    Accuracy{Intrinsic::kTanh, Tanh, 3}, Accuracy{Intrinsic::kSigmoid, Sigmoid, 3},
                    Accuracy{Intrinsic::kErf, Erf, 2}),
    [](const auto& info) { return std::string(ir::IntrinsicName(info.param.intrinsic)); });

// Tests every intrinsic on float32, float64 and the short types, in vectors with a remainder,
// against the reference.
TEST(LlvmIntrinsicTest, AllOnAllFloatTypes) {
  for (const ir::Type type : {ir::kFloat32, ir::kFloat64, ir::kFloat16, ir::kBFloat16,
                              ir::kFloat8E4M3, ir::kFloat8E5M2}) {
    for (int id = 0; id <= static_cast<int>(Intrinsic::kLog2); ++id) {
      const auto intrinsic = static_cast<Intrinsic>(id);
      ProgramBuilder b;
      const int X = b.Buffer("x", ir::Scope::kInput, {23}, type);
      const int Y = b.Buffer("y", ir::Scope::kOutput, {23}, type);
      const ir::Expr v = b.Var("v", 23);
      // 0.3 .. 3.3 is inside every domain and avoids whole numbers.
      const ir::Expr x = b.pool().Mul(b.pool().Add(b.Load(X, {v}), b.pool().Float(3.3, type)),
                                      b.pool().Float(0.5, type));
      std::vector<ir::Expr> args(static_cast<size_t>(ir::IntrinsicArity(intrinsic)), x);
      b.Kernel("f", b.For(v, LoopKind::kVectorized, b.Store(Y, {v}, b.Call(intrinsic, args))));
      const double tolerance = type == ir::kFloat64   ? 1e-14
                               : type == ir::kFloat32 ? 1e-6
                               : type == ir::kFloat16 ? 2e-3
                               : type.bits == 16      ? 2e-2
                                                      : 0.3;
      const Status status = CompareWithReference(b.program(), 1, tolerance);
      EXPECT_TRUE(status.ok()) << ir::IntrinsicName(intrinsic) << " " << ir::TypeName(type) << ": "
                               << status;
    }
  }
}
}  // namespace
}  // namespace kiln::codegen
