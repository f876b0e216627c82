// Measures how close generated code comes to the machine's peak: one core, register-tiled matrix
// products on packed data, and the time of compilation.
//
//   bazel run //compiler/codegen/llvm:llvm_bench [-- --asm]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <vector>

#include "compiler/codegen/llvm/llvm.h"
#include "compiler/codegen/llvm/loaded_program_testing.h"
#include "compiler/codegen/matmul_testing.h"
#include "compiler/codegen/program_builder_testing.h"

namespace kiln::codegen {
namespace {
double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Takes the best of many readings, because other processes share the machine.
template <typename Body>
double BestSeconds(double budget, Body&& body) {
  double best = 1e9;
  for (const double end = Seconds() + budget; Seconds() < end;) {
    const double start = Seconds();
    body();
    best = std::min(best, Seconds() - start);
  }
  return best;
}

StatusOr<LoadedProgram> CompileAndLoad(const ir::Program& program, LlvmTimes* times) {
  LlvmOptions options;
  options.times = times;
  KILN_ASSIGN_OR_RETURN(const Compiled compiled, CompileLlvm(program, {}, options));
  return LoadedProgram::Load(compiled.binary);
}

// Measures independent chains of multiply-adds that stay in registers, which is the peak of one
// core.
StatusOr<double> PeakFlops() {
  constexpr int64_t kChains = 12, kLanes = 16, kSteps = 100000;
  ProgramBuilder b;
  const int X = b.Buffer("X", ir::Scope::kInput, {2});
  const int Y = b.Buffer("Y", ir::Scope::kOutput, {kChains, kLanes});
  const ir::Expr k = b.Var("k", kSteps), i = b.Var("i", kChains), v = b.Var("v", kLanes);
  const ir::Stmt step = b.Store(
      Y, {i, v}, b.Add(b.Mul(b.Load(Y, {i, v}), b.Load(X, {b.Int(0)})), b.Load(X, {b.Int(1)})));
  b.Kernel("peak",
           b.For(k, ir::LoopKind::kSerial,
                 b.For(i, ir::LoopKind::kUnrolled, b.For(v, ir::LoopKind::kVectorized, step))));
  KILN_ASSIGN_OR_RETURN(const LoadedProgram program, CompileAndLoad(b.program(), nullptr));
  GuardedBytes x(8), y(kChains * kLanes * 4);
  x.as<float>()[0] = 0.999f;
  x.as<float>()[1] = 0.37f;
  const double seconds = BestSeconds(1.0, [&] { program.Run({x.data(), y.data()}); });
  return 2.0 * kChains * kLanes * kSteps / seconds;
}

// Compares with sums in double precision, on a sample of the rows.
Status CheckMatmul(const MatmulTiles& t, const float* a, const float* b, const float* c) {
  for (int64_t i = 0; i < t.m; i += 61) {
    for (int64_t j = 0; j < t.n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < t.k; ++k) {
        sum += static_cast<double>(a[(i / t.tile_m * t.k + k) * t.tile_m + i % t.tile_m]) *
               b[(j / t.tile_n * t.k + k) * t.tile_n + j % t.tile_n];
      }
      if (!(std::abs(sum - c[i * t.n + j]) < 1e-3))
        return Internal("C[{}, {}] is {}, not {}", i, j, c[i * t.n + j], sum);
    }
  }
  return OkStatus();
}

Status BenchMatmul(const MatmulTiles& tiles, double peak) {
  const MatmulProgram matmul = MakeTiledMatmul(tiles);
  LlvmTimes times;
  KILN_RETURN_IF_ERROR(CompileAndLoad(matmul.builder.program(), &times).status());
  KILN_ASSIGN_OR_RETURN(const LoadedProgram program,
                        CompileAndLoad(matmul.builder.program(), &times));
  const auto bytes = [](int64_t a, int64_t b) { return static_cast<size_t>(a * b * 4); };
  GuardedBytes a(bytes(tiles.m, tiles.k)), b(bytes(tiles.k, tiles.n)), c(bytes(tiles.m, tiles.n));
  for (int64_t i = 0; i < tiles.m * tiles.k; ++i)
    a.as<float>()[i] = static_cast<float>(i * 37 % 101) / 101.0f - 0.5f;
  for (int64_t i = 0; i < tiles.k * tiles.n; ++i)
    b.as<float>()[i] = static_cast<float>(i * 53 % 103) / 103.0f - 0.5f;
  const double seconds = BestSeconds(1.0, [&] { program.Run({a.data(), b.data(), c.data()}, 1); });
  KILN_RETURN_IF_ERROR(CheckMatmul(tiles, a.as<float>(), b.as<float>(), c.as<float>()));
  const double flops = 2.0 * static_cast<double>(tiles.m * tiles.n * tiles.k) / seconds;
  fmt::print(
      "{:4}x{:<4}x{:<4} tile {:2}x{:<3} {:6}  {:7.1f} GFLOP/s {:5.1f}% of peak   compile {:5.1f} "
      "ms: generate {:.1f} "
      "optimize {:.1f} codegen {:.1f} link {:.1f}\n",
      tiles.m, tiles.n, tiles.k, tiles.tile_m, tiles.tile_n, tiles.local ? "local" : "global",
      flops / 1e9, 100 * flops / peak,
      times.generate_ms + times.optimize_ms + times.codegen_ms + times.link_ms, times.generate_ms,
      times.optimize_ms, times.codegen_ms, times.link_ms);
  return OkStatus();
}

Status Main(bool assembly) {
  KILN_ASSIGN_OR_RETURN(const target::Target host, ResolveCpu({}));
  KILN_ASSIGN_OR_RETURN(const double peak, PeakFlops());
  fmt::print("{}: {:.1f} GFLOP/s peak of one core, measured\n", host.options.at("mcpu"),
             peak / 1e9);
  const MatmulTiles shapes[] = {
      {.m = 504, .n = 512, .k = 512, .tile_m = 6, .tile_n = 32, .local = true},
      {.m = 504, .n = 512, .k = 512, .tile_m = 6, .tile_n = 64, .local = true},
      {.m = 504, .n = 512, .k = 512, .tile_m = 12, .tile_n = 32, .local = true},
      {.m = 504, .n = 512, .k = 512, .tile_m = 7, .tile_n = 16, .local = true},
      {.m = 512, .n = 512, .k = 512, .tile_m = 8, .tile_n = 32, .local = true},
      {.m = 512, .n = 512, .k = 512, .tile_m = 8, .tile_n = 32, .local = false},
      {.m = 504, .n = 504, .k = 512, .tile_m = 8, .tile_n = 28, .local = true},
      {.m = 504, .n = 504, .k = 512, .tile_m = 14, .tile_n = 7, .local = true},
  };
  for (const MatmulTiles& tiles : shapes) {
    KILN_RETURN_IF_ERROR(BenchMatmul(tiles, peak));
    if (!assembly) continue;
    KILN_ASSIGN_OR_RETURN(const std::string text,
                          PrintAssembly(MakeTiledMatmul(tiles).builder.program(), {}));
    fmt::print("{}\n", text);
  }
  return OkStatus();
}
}  // namespace
}  // namespace kiln::codegen

int main(int argc, char** argv) {
  const kiln::Status status = kiln::codegen::Main(argc > 1 && std::strcmp(argv[1], "--asm") == 0);
  if (!status.ok()) fmt::print(stderr, "{}\n", kiln::Message(status));
  return status.ok() ? 0 : 1;
}
