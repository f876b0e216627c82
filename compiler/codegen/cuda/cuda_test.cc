#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>

#include "base/status_testing.h"
#include "compiler/codegen/chain_testing.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/programs_testing.h"
#include "compiler/codegen/cuda/right_program_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/program_text.h"

namespace kiln::codegen {
namespace {
using testing::_;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string Generate(std::string_view text, const CudaOptions& options = {}) {
  const StatusOr<ir::Program> program = ir::ParseProgram(text);
  if (!program.ok()) return "REFUSED: " + std::string(Message(program.status()));
  const StatusOr<CudaSource> source = GenerateCuda(*program, options);
  return source.ok() ? source->text : "REFUSED: " + std::string(Message(source.status()));
}

void ExpectRight(std::string_view text, double tolerance = 1e-5, bool may_use_stack = false) {
  ExpectRightProgram(text, {.tolerance = tolerance, .may_use_stack = may_use_stack});
}

// One kernel of 8 threads around one vectorized or other loop.
std::string Elementwise(std::string_view arguments, std::string_view body) {
  return fmt::format(
      "program({}) {{ stage s kernel k grid [1, 1, 1] block [8, 1, 1] {{ threadIdx.x t in 0..8 {{ "
      "{} }} }} }}",
      arguments, body);
}

TEST(Cuda, TiledMatmul) {
  ExpectRight(kTiledMatmul);
  const std::string text = Generate(kTiledMatmul);
  EXPECT_THAT(text, HasSubstr("extern \"C\" __global__ void __launch_bounds__(64)\nmatmul(\n    "
                              "const float* __restrict__ A /* [64, 48] */,\n"));
  EXPECT_THAT(text, HasSubstr("  __shared__ __align__(16) float A_shared[512];  // [32, 16]\n"));
  EXPECT_THAT(text, HasSubstr(R"(
    // A.shared
    for (int f0 = 0; f0 < 2; ++f0) {
      *reinterpret_cast<float4*>(&A_shared[t * 4 + f0 * 256]) = *reinterpret_cast<const float4*>(&A[k_0 * 16 + f0 * 768 + b_div_2 * 1536 + t_div_4 * 48 + t_mod_4 * 4]);
    }
)"));
  EXPECT_THAT(text, HasSubstr(R"(
    __syncthreads();
    // C.local
    for (int k_1 = 0; k_1 < 16; ++k_1) {
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float4 B_shared_vec = *reinterpret_cast<const float4*>(&B_shared[k_1 * 32 + t_mod_8 * 4]);
        C_local[i * 4] += A_shared[k_1 + i * 16 + t_div_8 * 64] * B_shared_vec.x;
)"));
  // Quotients have names, outside the loops.
  const std::string loops = text.substr(text.find("for ("));
  EXPECT_THAT(loops, Not(HasSubstr(" % ")));
  EXPECT_EQ(loops.find(" / "), loops.npos);
}

TEST(Cuda, PaddedConvolution) {
  ExpectRight(kConv);
  EXPECT_THAT(Generate(kConv), AllOf(HasSubstr(": make_float4(0.0f, 0.0f, 0.0f, 0.0f);"),
                                     HasSubstr("*reinterpret_cast<float4*>(&out[")));
}

TEST(Cuda, Reduction) {
  ExpectRight(kReduction);
  // A tree that ends otherwise than lowering makes it stays in shared memory.
  EXPECT_THAT(Generate(kReduction),
              HasSubstr("  __syncthreads();\n  if (t < 16) {\n    red[t] += red[t + 16];\n  }\n"));
}

// The threads of a block reduce `rows` rows, `threads` of them each: sums, and the place of the
// largest element.
std::string ThreadReduction(int rows, int threads, std::string_view type = "float32") {
  std::string tree;
  const auto at = [&](std::string_view thread) { return fmt::format("[r, {}]", thread); };
  for (int half = threads / 2; half > 0; half /= 2) {
    const std::string own = at("t"), other = at(fmt::format("t + {}", half));
    tree += fmt::format(
        "if t < {0} {{ s{1} = s{1} + s{2} @ s i{1} = select(v{1} >= v{2}, i{1}, i{2}) @ s v{1} = "
        "select(v{1} >= v{2}, v{1}, v{2}) @ s }} barrier ",
        half, own, other);
  }
  return fmt::format(
      "program(a: input {2}[3, {0}, {1}], sum: output {2}[3, {0}], top: output {2}[3, {0}], place: "
      "output int32[3, {0}]) {{ stage s kernel k grid [3, 1, 1] block [{1}, {0}, 1] {{ blockIdx.x "
      "b in 0..3 {{ threadIdx.y r in 0..{0} {{ threadIdx.x t in 0..{1} {{ alloc s: shared {2}[{0}, "
      "{1}] alloc v: shared {2}[{0}, {1}] alloc i: shared int32[{0}, {1}] s[r, t] = a[b, r, t] @ s "
      "i[r, t] = int32(t) @ s v[r, t] = a[b, r, t] @ s barrier {3} if t == 0 {{ sum[b, r] = s[r, "
      "0] @ s top[b, r] = v[r, 0] @ s place[b, r] = i[r, 0] @ s }} }} }} }} }} }}",
      rows, threads, type, tree);
}

TEST(Cuda, ReductionsOverPartsOfAWarp) {
  for (const auto& [rows, threads] : {std::pair{1, 32}, {8, 8}, {3, 4}, {3, 16}}) {
    SCOPED_TRACE(fmt::format("{} rows, {} threads", rows, threads));
    const std::string text = ThreadReduction(rows, threads);
    ExpectRight(text);
    // Rows of a warp that is not full would wait for threads that do not exist.
    const bool is_shuffled = rows * threads <= 32 || rows * threads % 32 == 0;
    EXPECT_EQ(Generate(text).find("__shared__") == std::string::npos, is_shuffled);
    EXPECT_EQ(Generate(text).find("__shfl_down_sync") != std::string::npos, is_shuffled);
  }
  for (const std::string_view type : {"float64", "int8"}) {
    SCOPED_TRACE(type);
    ExpectRight(ThreadReduction(4, 8, type));
  }
  EXPECT_THAT(Generate(ThreadReduction(3, 4)), HasSubstr("__shfl_down_sync(0xfffu, "));
  // A store that reads what the one before it has changed.
  std::string text = ThreadReduction(1, 4);
  for (size_t at = 0; (at = text.find(" i[r, t] = select(v", at)) != text.npos; ++at)
    text.replace(at, 19, " i[r, t] = select(s");
  ExpectRight(text);
  EXPECT_THAT(Generate(text), Not(HasSubstr("__shfl")));
}

TEST(Cuda, ReductionsOverABlock) {
  for (const int threads : {64, 1024}) {
    SCOPED_TRACE(threads);
    std::string text = ThreadReduction(1, threads);
    // As lowering makes it: without rows.
    for (size_t at; (at = text.find("[r, t")) != text.npos;) text.replace(at, 5, "[t");
    for (size_t at; (at = text.find("[r, 0]")) != text.npos;) text.replace(at, 6, "[0]");
    for (size_t at; (at = text.find(fmt::format("[1, {}]", threads))) != text.npos;)
      text.replace(at, fmt::format("[1, {}]", threads).size(), fmt::format("[{}]", threads));
    for (size_t at; (at = text.find("a[b, r, t]")) != text.npos;)
      text.replace(at, 10, "a[b, 0, t]");
    ExpectRight(text);
    EXPECT_THAT(Generate(text),
                AllOf(HasSubstr("if (t % 32 == 0) {"),
                      HasSubstr(fmt::format("s_value = s[t % {}];", threads / 32))));
  }
  EXPECT_THAT(Generate(ThreadReduction(2, 64)), Not(HasSubstr("__shfl")));
}

TEST(Cuda, SumsOfByteProductsGoFourByFour) {
  const auto matmul = [](std::string_view b, std::string_view at, std::string_view shift) {
    return fmt::format(
        "program(a: input int8[8, 20], b: input int8[{}], out: output int32[8, 6]) {{ stage s "
        "kernel k grid [1, 1, 1] block [8, 1, 1] {{ threadIdx.x t in 0..8 {{ alloc acc: local "
        "int32[6] for j0 in 0..6 {{ acc[j0] = 0 @ s }} for k0 in 0..4 {{ for j in 0..6 {{ for k1 "
        "in "
        "0..4 {{ acc[j] = acc[j] + int32(a[t, k0*4 + k1{}])*int32(b[{}]) @ s }} }} }} for j1 in "
        "0..6 {{ out[t, j1] = acc[j1] @ s }} }} }} }}",
        b, shift, at);
  };
  const std::string good = matmul("6, 20", "j, k0*4 + k1", "");
  ExpectRight(good, 0);
  EXPECT_THAT(Generate(good),
              HasSubstr("acc[j] = __dp4a(*reinterpret_cast<const int*>(&a[t * 20 + k0 * 4]), "
                        "*reinterpret_cast<const int*>(&b[k0 * 4 + j * 20]), acc[j]);"));
  // Bytes apart, and bytes that do not begin at a word.
  for (const std::string& text :
       {matmul("20, 6", "k0*4 + k1, j", ""), matmul("6, 20", "j, k0*4 + k1", " + 1"),
        matmul("6, 18", "j, k0*4 + k1", "")}) {
    ExpectRight(text, 0);
    EXPECT_THAT(Generate(text), Not(HasSubstr("__dp4a")));
  }
}

TEST(Cuda, InstructionsAreThoseOfTheTable) {
  const auto generate = [](std::string_view name, std::string_view value) {
    StatusOr<ir::Program> program = ir::ParseProgram(fmt::format(
        "program(a: input int8[4], b: input int8[4], out: output int32[1]) {{ stage s kernel k {{ "
        "out[0] = 0 @ s instruction {} {{ for k in 0..4 {{ out[0] = out[0] + {} @ s }} }} }} }}",
        name, value));
    KILN_CHECK(program.ok(), "{}", Message(program.status()));
    return GenerateCuda(*program).status();
  };
  EXPECT_OK(generate("dp4a", "int32(a[k])*int32(b[k])"));
  EXPECT_THAT(generate("dp5a", "int32(a[k])*int32(b[k])"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("there is no instruction 'dp5a'")));
  EXPECT_THAT(generate("dp4a", "int32(a[k])"),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("instruction 'dp4a' does not compute what its statement says")));
}

// What a guard says makes quotients vanish.
TEST(Cuda, GuardsSimplifyIndices) {
  const std::string text =
      "program(a: input float32[1, 128], out: output float32[1, 128]) { stage s kernel k grid [1, "
      "1, 1] block [56, 1, 1] { threadIdx.x t in 0..56 { for f in 0..3 { if f*56 + t < 128 && "
      "(f*56 + t) // 128 < 1 { out[(f*56 + t) // 128, (f*56 + t) // 64 % 2 * 64 + (f*56 + t) % "
      "64] = if(f*56 + t >= 3, a[(f*56 + t - 3) // 128, f*56 + t - 3], 0.0) @ s } } } } }";
  ExpectRight(text);
  EXPECT_THAT(Generate(text),
              HasSubstr("    if (t + f * 56 < 128) {\n      out[t + f * 56] = t + f "
                        "* 56 >= 3 ? a[t + f * 56 - 3] : 0.0f;\n"));
}

TEST(Cuda, TwoKernelsVirtualThreadsGuardsAndIndices) {
  ExpectRight(kOdd);
  EXPECT_THAT(Generate(kOdd), AllOf(HasSubstr("  #pragma unroll\n  for (int v = 0; v < 4; ++v) {"),
                                    HasSubstr("static_cast<int>(r[")));
}

TEST(Cuda, HalfVectors) {
  for (const auto& [type, tolerance] : {std::pair<std::string, double>{"float16", 2e-3},
                                        {"bfloat16", 2e-2},
                                        {"float8_e4m3fn", 0.13},
                                        {"float8_e5m2", 0.26}}) {
    const std::string text = Elementwise(
        fmt::format("a: input {0}[64], b: input {0}[64], out: output {0}[64]", type),
        "vectorize v in 0..8 { out[t*8 + v] = a[t*8 + v]*b[t*8 + v] + a[t*8 + v] @ s }");
    ExpectRight(text, tolerance);
    EXPECT_THAT(Generate(text), HasSubstr("_x8*>(&a[t * 8]);"));
  }
}

// A value and a function of it: what they have in common is loaded once.
TEST(Cuda, VectorsOfSeveralOutputs) {
  const auto text = [](int stored, std::string_view second) {
    return Elementwise(
        fmt::format("a: input float32[32], b: input float32[32], x: output float32[{0}], y: output "
                    "float32[{0}]",
                    stored),
        fmt::format(
            "vectorize v in 0..4 {{ if t*4 + v < {} {{ x[t*4 + v] = a[t*4 + v] + b[t*4 + v] @ s {} "
            "@ s }} }}",
            stored, second));
  };
  const std::string both = "y[t*4 + v] = max((a[t*4 + v] + b[t*4 + v])*b[t*4 + v], 0.0)";
  for (const int stored : {32, 30}) {
    const std::string program = text(stored, both);
    ExpectRight(program);
    const std::string cuda = Generate(program);
    EXPECT_THAT(cuda, HasSubstr("*reinterpret_cast<float4*>(&x[t * 4]) = "));
    EXPECT_THAT(cuda, HasSubstr("*reinterpret_cast<float4*>(&y[t * 4]) = "));
    const std::string load = "*reinterpret_cast<const float4*>(&a[t * 4])";
    EXPECT_EQ(cuda.find(load), cuda.rfind(load)) << cuda;
  }
  // Lane after lane: what is stored is read by another lane.
  const std::string across = text(32, "y[t*4 + v] = if(v >= 1, x[t*4 + v - 1], 0.0)");
  EXPECT_THAT(Generate(across), AllOf(HasSubstr("y["), Not(HasSubstr("float4"))));
}

// Numbers of all magnitudes, the middles of neighbours of a type among them, and what lies beside
// those. Of 8 bits: what a half can say; of 16: what the upper half of a float can.
double NumberForConversion(uint32_t i, bool of_half) {
  if (of_half) {
    const auto bits = static_cast<uint16_t>(i);
    return ir::ReadElement(&bits, ir::kFloat16).f;
  }
  constexpr uint32_t kLower[] = {0, 0x0fff, 0x1000, 0x3000, 0x8000, 0xf000};
  const uint32_t bits = i << 16 | kLower[i / 3 % 6];
  return ir::ReadElement(&bits, ir::kFloat32).f;
}

TEST(Cuda, ConversionsOfNarrowFloatsAreThoseOfTheInterpreter) {
  for (const std::string type : {"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"}) {
    const bool is_float8 = type.starts_with("float8");
    for (const std::string from :
         {"float16", "float32", "float64", "int32", "int64", "uint64", "bool"}) {
      SCOPED_TRACE(from + " to " + type);
      ASSERT_OK_AND_ASSIGN(
          const ir::Program program,
          ir::ParseProgram(fmt::format(
              "program(a: input {0}[65536], out: output {1}[65536], back: output float32[65536]) "
              "{{ stage s stage b kernel k grid [64, 1, 1] block [256, 1, 1] {{ blockIdx.x i in "
              "0..64 {{ threadIdx.x t in 0..256 {{ for f in 0..4 {{ out[i*1024 + f*256 + t] = "
              "{1}(a[i*1024 + f*256 + t]) @ s back[i*1024 + f*256 + t] = "
              "float32({1}(a[i*1024 + f*256 + t])) @ b }} }} }} }} }}",
              from, type)));
      std::vector<ir::NDArray> buffers = {ir::NDArray(*ir::ParseType(from), {65536}),
                                          ir::NDArray(*ir::ParseType(type), {65536}),
                                          ir::NDArray(ir::kFloat32, {65536})};
      const double nudge = from == "float64" ? 0x1p-40 : 0x1p-20;
      for (uint32_t i = 0; i < 65536; ++i) {
        const double number = NumberForConversion(i, is_float8 || from.find("int") != from.npos);
        buffers[0].SetDouble(i, number * (1 + nudge * (static_cast<int>(i / 5 % 3) - 1)));
      }
      std::vector<ir::NDArray> expected = buffers;
      ir::NDArray* const arguments[] = {&expected[0], &expected[1], &expected[2]};
      ASSERT_OK(ir::Interpret(program, arguments));
      ASSERT_OK_AND_ASSIGN(const CudaSource source, GenerateCuda(program));
      EXPECT_THAT(source.text, Not(HasSubstr("#include")));
      if (from.starts_with("float")) {  // what is rounded is stored
        EXPECT_THAT(source.text, Not(HasSubstr("_to_e4m3(e4m3_to_float(")));
      }
      ASSERT_OK(EmulateCuda(program, source, buffers));
      for (int64_t i = 0; i < 65536; ++i) {
        const double got = buffers[1].GetDouble(i), want = expected[1].GetDouble(i);
        ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
            << buffers[0].GetDouble(i) << ": " << got << ", expected " << want;
        ASSERT_TRUE(std::signbit(got) == std::signbit(want) || std::isnan(want));
        ASSERT_TRUE(buffers[2].GetDouble(i) == got || std::isnan(got));
      }
      if (!FindNvrtc().ok()) continue;
      for (const char* arch : {"sm_80", "sm_89", "sm_90"}) {
        ASSERT_OK_AND_ASSIGN(const std::string ptx, CompilePtx(source.text, arch));
        EXPECT_EQ(ptx.find("cvt.rn.satfinite.") != ptx.npos,
                  is_float8 && std::string(arch) != "sm_80");
        EXPECT_OK(CompileCubin(source.text, arch).status());
      }
    }
  }
}

// What no int type holds, and what minima forget.
constexpr double kSpecial[] = {
    0.0,          -0.0,         1.0,    -1.0,   6.0,     -6.5,    0x1p-140, -0x1p-140,
    INFINITY,     -INFINITY,    NAN,    -NAN,   127.5,   -128,    128,      -129,
    255,          256,          32767,  -32769, 65536,   -0.75,   0x1p31,   -0x1p31,
    2147483520.0, 4294967040.0, 0x1p32, 0x1p63, -0x1p63, -0x1p64, 1e30,     -1e30};
constexpr auto kNumSpecial = static_cast<int64_t>(std::size(kSpecial));

bool SameNumber(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

// Of inputs of kNumSpecial^2 elements, of which x is the same kNumSpecial times. NVRTC, where there is
// one, takes the text for GPUs with and without an instruction for each.
void ExpectTheSameOfSpecialValues(const std::string& text) {
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(text));
  std::vector<ir::NDArray> buffers;
  for (int i = 0; i < program.num_args(); ++i) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(i)];
    buffers.emplace_back(buffer.type, buffer.shape);
    if (buffer.scope != ir::Scope::kInput) continue;
    for (int64_t k = 0; k < buffers.back().num_elements(); ++k)
      buffers.back().SetDouble(k, kSpecial[i == 0 ? k / kNumSpecial : k % kNumSpecial]);
  }
  std::vector<ir::NDArray> expected = buffers;
  std::vector<ir::NDArray*> arguments;
  for (ir::NDArray& array : expected) arguments.push_back(&array);
  ASSERT_OK(ir::Interpret(program, arguments));
  ASSERT_OK_AND_ASSIGN(const CudaSource source, GenerateCuda(program));
  ASSERT_OK(EmulateCuda(program, source, buffers));
  for (size_t slot = 0; slot < buffers.size(); ++slot) {
    for (int64_t i = 0; i < buffers[slot].num_elements(); ++i) {
      ASSERT_TRUE(SameNumber(buffers[slot].GetDouble(i), expected[slot].GetDouble(i)))
          << program.buffers[slot].name << "[" << i << "] is " << buffers[slot].GetDouble(i)
          << ", expected " << expected[slot].GetDouble(i) << "\n"
          << source.text;
    }
  }
  if (!FindNvrtc().ok()) return;
  for (const char* arch : {"sm_75", "sm_80", "sm_90"}) {
    ASSERT_OK_AND_ASSIGN(const Cubin cubin, CompileCubin(source.text, arch));
    EXPECT_EQ(cubin.log, "");
  }
}

TEST(Cuda, MinimumAndMaximumOfSpecialValues) {
  constexpr int64_t kSize = kNumSpecial * kNumSpecial;
  for (const std::string type : {"float32", "float64", "float16", "bfloat16"}) {
    SCOPED_TRACE(type);
    std::string body;
    int row = 0;
    for (const std::string right : {"y[t]", "0.0", "-0.0", "6.0", "-6.0", "inf", "-inf"}) {
      for (const std::string name : {"min", "max"})
        body += fmt::format("z[{}, t] = {}(x[t], {}) @ s ", row++, name, right);
    }
    ExpectTheSameOfSpecialValues(
        fmt::format("program(x: input {0}[{1}], y: input {0}[{1}], z: output {0}[{2}, {1}]) {{ "
                    "stage s kernel k "
                    "grid [1, 1, 1] block [{1}, 1, 1] {{ threadIdx.x t in 0..{1} {{ {3} }} }} }}",
                    type, kSize, row, body));
  }
}

TEST(Cuda, SpecialValuesToIntegersAndNarrowFloats) {
  constexpr int64_t kSize = kNumSpecial * kNumSpecial;
  for (const std::string from : {"float32", "float64", "float16", "bfloat16"}) {
    SCOPED_TRACE(from);
    std::string outputs, body;
    for (const std::string to :
         {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
          "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"}) {
      outputs += fmt::format(", to_{0}: output {0}[{1}]", to, kSize);
      body += fmt::format("to_{0}[t] = {0}(x[t]) @ s ", to);
    }
    ExpectTheSameOfSpecialValues(fmt::format(
        "program(x: input {}[{}]{}) {{ stage s kernel k grid [1, 1, 1] block [{}, 1, 1] {{ "
        "threadIdx.x t in 0..{} {{ {} }} }} }}",
        from, kSize, outputs, kSize, kSize, body));
  }
}

TEST(Cuda, MovedFloat8sAreNotConverted) {
  const std::string text =
      Elementwise("a: input float8_e4m3fn[128], out: output float8_e4m3fn[128]",
                  "vectorize v in 0..16 { out[t*16 + v] = a[t*16 + v] @ s }");
  ExpectRight(text, 0);
  const std::string cuda = Generate(text), kernel = cuda.substr(cuda.find("__global__"));
  EXPECT_THAT(kernel, AllOf(HasSubstr("e4m3_x16"), Not(HasSubstr("_to_"))));
}

TEST(Cuda, MovedHalvesAreNotConverted) {
  const std::string text = Elementwise("a: input float16[64], out: output float16[64]",
                                       "vectorize v in 0..8 { out[t*8 + v] = a[t*8 + v] @ s }");
  ExpectRight(text, 0);
  const std::string cuda = Generate(text), kernel = cuda.substr(cuda.find("__global__"));
  EXPECT_THAT(kernel, AllOf(HasSubstr("f16_x8"), Not(HasSubstr("_to_"))));
}

TEST(Cuda, EveryType) {
  for (const std::string type :
       {"int8", "int32", "int64", "float32", "float64", "float16", "uint8", "int16", "uint16",
        "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"}) {
    ExpectRight(Elementwise(fmt::format("a: input {0}[64], out: output {0}[64]", type),
                            "vectorize v in 0..4 { for i in 0..2 { out[t*8 + v + 4*i] = "
                            "max(a[t*8 + v + 4*i], a[t]) - a[63] @ s } }"),
                1e-3);
  }
  ExpectRight(Elementwise("a: input float32[64], out: output bool[64]",
                          "vectorize v in 0..8 { out[t*8 + v] = a[t*8 + v] < 0.0 @ s }"),
              0);
}

// What has the highest bit set is large.
TEST(Cuda, LargeUnsignedNumbers) {
  const std::string text = Elementwise(
      "a: input uint64[8], b: input uint64[8], out: output uint64[8, 8], f: output float32[8], "
      "h: output float16[8], i: output int64[8]",
      "out[t, 0] = max(a[t], b[t]) @ s out[t, 1] = min(a[t], 18446744073709551000) @ s "
      "out[t, 2] = a[t] // max(b[t], 1) @ s out[t, 3] = a[t] % 10 @ s "
      "out[t, 4] = a[t] >> 3 @ s out[t, 5] = if(a[t] < b[t], a[t], ~b[t]) @ s "
      "out[t, 6] = uint64(int32(a[t])) @ s out[t, 7] = uint64(float32(b[t])) @ s "
      "f[t] = float32(a[t]) @ s h[t] = float16(a[t]) @ s i[t] = int64(a[t]) + 1 @ s");
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(text));
  std::vector<ir::NDArray> buffers;
  for (const ir::Buffer& buffer : program.buffers) buffers.emplace_back(buffer.type, buffer.shape);
  constexpr uint64_t kNumbers[] = {0,
                                   1,
                                   65504,
                                   uint64_t{1} << 53,
                                   (uint64_t{1} << 63) - 1,
                                   uint64_t{1} << 63,
                                   UINT64_MAX - 600,
                                   UINT64_MAX};
  for (int64_t i = 0; i < 8; ++i) {
    buffers[0].Set(i, ir::Value::Int(static_cast<int64_t>(kNumbers[i])));
    buffers[1].Set(i, ir::Value::Int(static_cast<int64_t>(kNumbers[i * 5 % 8])));
  }
  std::vector<ir::NDArray> expected = buffers;
  std::vector<ir::NDArray*> arguments;
  for (ir::NDArray& array : expected) arguments.push_back(&array);
  ASSERT_OK(ir::Interpret(program, arguments));
  ASSERT_OK_AND_ASSIGN(const CudaSource source, GenerateCuda(program));
  ASSERT_OK(EmulateCuda(program, source, buffers));
  for (size_t k = 0; k < buffers.size(); ++k) EXPECT_EQ(buffers[k], expected[k]) << source.text;
  if (FindNvrtc().ok()) EXPECT_OK(CompileCubin(source.text, "sm_90").status());
}

TEST(Cuda, BitsOfOtherTypes) {
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"float32", "int32"},
                                                        {"uint32", "float32"},
                                                        {"float64", "uint64"},
                                                        {"int64", "float64"},
                                                        {"float64", "int64"},
                                                        {"float16", "uint16"},
                                                        {"int16", "bfloat16"},
                                                        {"bfloat16", "int16"},
                                                        {"float8_e4m3fn", "uint8"},
                                                        {"uint8", "float8_e4m3fn"},
                                                        {"float16", "bfloat16"}}) {
    SCOPED_TRACE(from + " as " + to);
    ExpectRight(
        Elementwise(fmt::format("a: input {}[64], out: output {}[64]", from, to),
                    fmt::format("for v in 0..8 {{ out[t*8 + v] = {}.bits(a[t*8 + v]) @ s }}", to)),
        0);
  }
}

// Vectors of odd length, lanes apart, unaligned, read across lanes: loops, with the same meaning.
TEST(Cuda, VectorsThatAreNone) {
  for (const std::string body :
       {"vectorize v in 0..7 { out[t*7 + v] = a[t*7 + v] @ s }",
        "vectorize v in 0..4 { out[v*8 + t] = a[t*4 + v] @ s }",
        "vectorize v in 0..4 { out[t*4 + v] = a[t*4 + v + 1] @ s }",
        "vectorize v in 0..4 { out[t*4 + v] = if(v < 2, a[t*4 + v], 1.0) @ s }",
        "vectorize v in 0..4 { out[t*4 + v] = a[t*4] + a[t*4 + v] @ s }",
        "vectorize v in 0..4 { out[t*4 + v] = if(t < 2, if(t < 1, a[t*4 + v], 5.0), a[t*4 + v + "
        "4]) @ s }",
        "vectorize v in 0..4 { out[t*4 + v] = if(a[t*4 + v] < 0.0, a[t*4 + v + 8], 1.0) @ s }",
        "vectorize v in 0..4 { out[(t*4 + v) % 32] = a[(t*4 + v) // 8 * 8 + (t*4 + v) % 8] @ s }",
        "vectorize v in 0..16 { if t < 2 { out[t*16 + v] = a[t*16 + v] * 2.0 @ s } }"}) {
    SCOPED_TRACE(body);
    const int n = body.find("0..7") != body.npos ? 56 : 32;
    ExpectRight(Elementwise(fmt::format("a: input float32[64], out: output float32[{}]", n), body));
  }
  EXPECT_THAT(Generate(Elementwise("a: input float32[64], out: output float32[32]",
                                   "vectorize v in 0..4 { out[t*4 + v] = a[t*4 + v + 1] @ s }")),
              Not(HasSubstr("const float4*")));
}

TEST(Cuda, Intrinsics) {
  for (const std::string type : {"float32", "float64"}) {
    std::string body;
    int row = 0;
    for (const std::string call :
         {"exp(a[t])", "log(abs(a[t]) + 1.5)", "sqrt(abs(a[t]))", "rsqrt(abs(a[t]) + 1.5)",
          "tanh(a[t])", "sigmoid(a[t])", "erf(a[t])", "pow(abs(a[t]), 2.5)", "floor(a[t]*3.0)",
          "ceil(a[t]*3.0)", "round(a[t]*5.0)", "sin(a[t])", "cos(a[t])", "a[t] / (a[t] + 3.0)",
          "min(a[t], 0.25)", "select(a[t] < 0.0 || a[t] > 0.5 && !(a[t] > 0.75), -inf, nan)"}) {
      body += fmt::format("out[{}, t] = {} @ s ", row++, call);
    }
    ExpectRight(Elementwise(fmt::format("a: input {0}[8], out: output {0}[16, 8]", type), body),
                1e-5, /*may_use_stack=*/true);  // sine and cosine of large arguments
  }
}

TEST(Cuda, LargeSharedMemoryIsDynamic) {
  const std::string text = Elementwise(
      "a: input float32[8], out: output float32[8]",
      "alloc big: shared float32[16384] alloc more: shared float32[8] big[t] = a[t] @ s "
      "more[t] = a[t] @ s barrier out[t] = big[7 - t] + more[7 - t] @ s");
  ExpectRight(text);
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(text));
  ASSERT_OK_AND_ASSIGN(const CudaSource source, GenerateCuda(program));
  EXPECT_EQ(source.kernels[0].dynamic_shared_bytes, 65536 + 32);
  EXPECT_EQ(source.kernels[0].static_shared_bytes, 0);
  EXPECT_THAT(source.text, HasSubstr("float* const more = reinterpret_cast<float*>(shared_memory + "
                                     "65536);  // [8]"));
}

TEST(Cuda, LargeTensorsAreIndexedWith64Bits) {
  const std::string large = Elementwise("a: input float32[70000, 70000], out: output float32[8]",
                                        "out[t] = a[t*8000, t] @ s");
  EXPECT_THAT(Generate(large), HasSubstr("a[(long long)t * 560000001]"));
  EXPECT_THAT(Generate(Elementwise("a: input float32[30000, 70000], out: output float32[8]",
                                   "out[t] = a[t*3, t] @ s")),
              HasSubstr("a[t * 210001]"));
}

TEST(Cuda, NamesAreIdentifiers) {
  const std::string text = Elementwise("int: input float32[8], out.0: output float32[8]",
                                       "for i.0 in 0..1 { out.0[t] = int[t] @ s }");
  EXPECT_THAT(Generate(text), AllOf(HasSubstr("int_1[t]"), HasSubstr("out_0[t]")));
  ExpectRight(text);
}

TEST(Cuda, GathersReadTheirIndicesAsVectors) {
  for (const std::string type : {"int32", "int64"}) {
    const std::string text = Elementwise(
        fmt::format("a: input float32[64], i: input {}[32] below 64, out: output float32[32]",
                    type),
        "for h in 0..2 { vectorize v in 0..2 { out[t*4 + h*2 + v] = a[i[t*4 + h*2 + v]] @ s } }");
    ExpectRight(text);
    EXPECT_THAT(Generate(text), HasSubstr("i_vec.y"));
  }
}

TEST(Cuda, NegativeNumeratorsRoundDown) {
  ExpectRight(Elementwise("a: input float32[8], out: output float32[8]",
                          "out[t] = a[(t - 5) // 3 + 2 + (t - 4) % 3] @ s"));
}

TEST(Cuda, TextGrowsWithTheNumberOfKernels) {
  const auto size_of = [](int length) {
    const auto source = GenerateCuda(MakeChain(length, ir::LoopKind::kThreadX));
    EXPECT_OK(source.status());
    return source.ok() ? static_cast<double>(source->text.size()) : 0;
  };
  EXPECT_LT(size_of(400) / size_of(100), 4.5);
}

// A kernel of 32 threads with 768 registers has 24 for each.
TEST(Cuda, RegistersOfABlockBoundThoseOfThreads) {
  ASSERT_OK_AND_ASSIGN(ir::Program program, ir::ParseProgram(kReduction));
  const auto text = [&](int64_t registers) {
    const auto source = GenerateCuda(program, {.registers_per_block = registers});
    return source.ok() ? source->text : std::string(Message(source.status()));
  };
  EXPECT_THAT(text(65536), HasSubstr("__launch_bounds__(32)")) << "no less than without";
  EXPECT_THAT(text(1024), HasSubstr("__maxnreg__(32)"));
  EXPECT_THAT(text(512), HasSubstr("16 registers each where a block has "
                                   "-registers_per_block=512, expected 24 or more"));
  program.kernels[0].hints[ir::Hint::kMinBlocks] = 32;
  EXPECT_THAT(text(2048), HasSubstr("__launch_bounds__(32, 32)")) << "64 for each already";
  if (!FindNvrtc().ok()) return;
  ASSERT_OK_AND_ASSIGN(const CudaSource source,
                       GenerateCuda(program, {.registers_per_block = 768}));
  ASSERT_OK_AND_ASSIGN(const Cubin cubin, CompileCubin(source.text, "sm_90"));
  EXPECT_LE(cubin.kernels[0].registers, 24);
}

TEST(Cuda, MinimumOfBlocksIsALaunchBound) {
  ASSERT_OK_AND_ASSIGN(ir::Program program, ir::ParseProgram(kReduction));
  program.kernels[0].hints[ir::Hint::kMinBlocks] = 2;
  ASSERT_OK_AND_ASSIGN(CudaSource source, GenerateCuda(program));
  EXPECT_THAT(source.text, HasSubstr("__launch_bounds__(32, 2)"));
  ASSERT_OK_AND_ASSIGN(program, ir::ParseProgram(ThreadReduction(1, 1024)));
  program.kernels[0].hints[ir::Hint::kMinBlocks] = 32;
  ASSERT_OK_AND_ASSIGN(source, GenerateCuda(program));
  EXPECT_THAT(source.text, HasSubstr("__launch_bounds__(1024, 2)")) << "2,048 threads";
}

TEST(Cuda, Faults) {
  EXPECT_THAT(Generate(kReduction, {.fault = Fault::kNullStore}), HasSubstr("nullptr"));
  EXPECT_THAT(Generate(kReduction, {.fault = Fault::kInfiniteLoop}),
              HasSubstr("while (clock64() != 0)"));
  EXPECT_THAT(Generate(kReduction, {.fault = Fault::kTrap}), HasSubstr("__trap();"));
  EXPECT_THAT(Generate(kReduction, {.fault = Fault::kOutOfBounds}), HasSubstr("] = out[0];"));
  ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(kReduction));
  EXPECT_THAT(CompareEmulated(program, 1, 1e-5, {.fault = Fault::kWrongAnswer}),
              StatusIs(StatusCode::kInternal, HasSubstr("y[0] is 10")));
  for (const std::string type : {"float8_e4m3fn", "float8_e5m2"}) {
    ASSERT_OK_AND_ASSIGN(
        const ir::Program copy,
        ir::ParseProgram(Elementwise(fmt::format("a: input {0}[8], out: output {0}[8]", type),
                                     "out[t] = a[t] @ s")));
    EXPECT_THAT(CompareEmulated(copy, 1, 100, {.fault = Fault::kWrongAnswer}),
                StatusIs(StatusCode::kInternal, HasSubstr("out[0] is ")));
  }
}

// 5 rows through a ring of 3 buffers, `pending` groups in flight; each thread reads what others
// copied.
std::string Ring(std::string_view type, int lanes, std::string_view value, int pending = 1) {
  std::string text = Elementwise(fmt::format("a: input {0}[5, 64], out: output {0}[5, 64]", type),
                                 R"(alloc s: shared TYPE[3, 64]
         for p in 0..2 { for f in 0..CHUNKS { vectorize v in 0..LANES {
           async s[p, f*8*LANES + t*LANES + v] = FIRST @ s } } commit }
         for r in 0..5 {
           barrier(PENDING)
           if r < 3 { for g in 0..CHUNKS { vectorize w in 0..LANES {
             async s[(r + 2) % 3, g*8*LANES + t*LANES + w] = NEXT @ s } } }
           commit
           for x in 0..8 { out[r, t*8 + x] = s[r % 3, 63 - t*8 - x] @ s }
         })");
  const auto replace = [](std::string& in, std::string_view from, const std::string& to) {
    for (size_t at = 0; (at = in.find(from, at)) != in.npos; at += to.size())
      in.replace(at, from.size(), to);
  };
  const std::string n = std::to_string(lanes), chunks = std::to_string(8 / lanes);
  std::string first(value), next(value);
  replace(first, "ROW", "p");
  replace(first, "COLUMN", "f*8*" + n + " + t*" + n + " + v");
  replace(next, "ROW", "(r + 2)");
  replace(next, "COLUMN", "g*8*" + n + " + t*" + n + " + w");
  replace(text, "FIRST", first);
  replace(text, "NEXT", next);
  replace(text, "TYPE", std::string(type));
  replace(text, "CHUNKS", chunks);
  replace(text, "LANES", n);
  replace(text, "PENDING", std::to_string(pending));
  return text;
}

TEST(Cuda, AsynchronousCopies) {
  constexpr std::string_view kPlain = "a[ROW, COLUMN]";
  for (const int lanes : {1, 4}) {
    const std::string text = Ring("float32", lanes, kPlain);
    ExpectRight(text);
    EXPECT_THAT(Generate(text), AllOf(HasSubstr(fmt::format("copy_async<{}>(&s[", 4 * lanes)),
                                      HasSubstr("  wait_for_copies<1>();\n    __syncthreads();\n"),
                                      HasSubstr("  commit_copies();\n")));
  }
  ExpectRight(Ring("float64", 2, kPlain));
  ExpectRight(Ring("int8", 4, kPlain));
  ExpectRight(Ring("float16", 8, kPlain));
  // Copies have 4 bytes at least: without, it is a load and a store.
  const std::string narrow = Ring("float16", 1, kPlain);
  ExpectRight(narrow);
  EXPECT_THAT(Generate(narrow), Not(HasSubstr("copy_async<2>")));
}

TEST(Cuda, AsynchronousCopiesOfZeros) {
  const std::string rows = Ring("float32", 4, "if(ROW >= 1, a[ROW - 1, COLUMN], 0.0)");
  ExpectRight(rows);
  EXPECT_THAT(Generate(rows), HasSubstr("copy_async_if<16>(p >= 1, &s["));
  // Lanes that differ go one by one.
  const std::string columns =
      Ring("float32", 4, "if(ROW >= 1, if(COLUMN >= 1, a[ROW - 1, COLUMN - 1], 0.0), 0.0)");
  ExpectRight(columns);
  EXPECT_THAT(Generate(columns), HasSubstr("copy_async_if<4>(p >= 1 && "));
}

// Where the architecture has no such copies they are loads and stores.
TEST(Cuda, AsynchronousCopiesOnOlderGpus) {
  for (const std::string_view value : {"a[ROW, COLUMN]", "if(ROW >= 1, a[ROW - 1, COLUMN], 0.0)"}) {
    ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(Ring("float32", 4, value)));
    ASSERT_OK(CompareEmulated(program, 3, 0, {}, /*late_copies=*/false));
    if (!FindNvrtc().ok()) continue;
    ASSERT_OK_AND_ASSIGN(const CudaSource source, GenerateCuda(program));
    ASSERT_OK_AND_ASSIGN(const NvrtcInfo nvrtc, FindNvrtc());
    const std::string oldest = fmt::format("sm_{}", nvrtc.archs.front());
    ASSERT_OK_AND_ASSIGN(const std::string old_ptx, CompilePtx(source.text, oldest));
    EXPECT_EQ(old_ptx.find("cp.async") == old_ptx.npos, nvrtc.archs.front() < 80);
    ASSERT_OK_AND_ASSIGN(const std::string ptx, CompilePtx(source.text, "sm_80"));
    EXPECT_THAT(ptx, AllOf(HasSubstr("cp.async.cg.shared.global"),
                           HasSubstr("cp.async.wait_group 1"), HasSubstr("cp.async.commit_group")));
  }
}

// What is read before its group was waited for is seen by the interpreter and by the emulator.
TEST(Cuda, CopiesThatAreNotWaitedForAreMissed) {
  ASSERT_OK_AND_ASSIGN(const ir::Program program,
                       ir::ParseProgram(Ring("float32", 4, "a[ROW, COLUMN]", /*pending=*/2)));
  EXPECT_THAT(CompareEmulated(program, 1, 1e-5),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("has not been written")));
  ASSERT_OK_AND_ASSIGN(const CudaSource source, GenerateCuda(program));
  std::vector<ir::NDArray> buffers(2, ir::NDArray(ir::kFloat32, {5, 64}));
  buffers[0].FillRandom(1, ir::RandomKind::kUniform, 0);
  ASSERT_OK(EmulateCuda(program, source, buffers));
  EXPECT_TRUE(std::isnan(buffers[1].GetDouble(0)));
}

TEST(Cuda, TheEmulatorSeesAHangingBarrier) {
  ASSERT_OK_AND_ASSIGN(const ir::Program program,
                       ir::ParseProgram(Elementwise("a: input float32[8], out: output float32[8]",
                                                    "if t < 4 { barrier } out[t] = a[t] @ s")));
  ASSERT_OK_AND_ASSIGN(const CudaSource source, GenerateCuda(program));
  std::vector<ir::NDArray> buffers(2, ir::NDArray(ir::kFloat32, {8}));
  EXPECT_THAT(EmulateCuda(program, source, buffers),
              StatusIs(StatusCode::kInternal, HasSubstr("wait at a barrier")));
}

TEST(Cuda, BlocksOfAClusterReadEachOther) {
  ExpectRight(kClusterSum);
  const std::string text = Generate(kClusterSum);
  EXPECT_THAT(text,
              HasSubstr("// 8 x 1 x 1 blocks of 8 x 1 x 1 threads, in clusters of 4, 128 bytes "
                        "of shared memory\nextern \"C\" __global__ void __cluster_dims__(4, 1, "
                        "1) __launch_bounds__(8)\n"));
  EXPECT_THAT(text, HasSubstr("float part[32];  // [32]\n"));
  EXPECT_THAT(text, HasSubstr("const int b = blockIdx.x / 4;  // 0..1\n"));
  EXPECT_THAT(text, HasSubstr("const int q = blockIdx.x % 4;  // 0..3\n"));
  EXPECT_THAT(text, HasSubstr("*reinterpret_cast<float4*>(&part[t * 4]) = "));
  EXPECT_THAT(text,
              HasSubstr("*reinterpret_cast<const float4*>(&in_block(part, r)[q * 8 + u * 4])"));
  if (!FindNvrtc().ok()) return;
  ASSERT_OK_AND_ASSIGN(const std::string ptx, CompilePtx(text, "sm_90", {}));
  EXPECT_THAT(ptx, AllOf(HasSubstr("mapa.u64"), HasSubstr("barrier.cluster.arrive.rel"),
                         HasSubstr("barrier.cluster.wait.acquire.aligned")));
  EXPECT_THAT(text, HasSubstr("  leave_cluster();\n}\n"));
  EXPECT_THAT(text, HasSubstr("  cluster_barrier();\n  const int q"));
}

// The index runs past the part where the guard does not hold: it is no other block's.
TEST(Cuda, BlocksOfAClusterStoreToTheirOwnPart) {
  std::string text(kClusterSum);
  const std::string_view whole =
      "vectorize v in 0..4 {\n            part[p, t*4 + v] = "
      "a[b, p, t*4 + v]*2.0 @ part\n          }";
  ASSERT_NE(text.find(whole), text.npos);
  text.replace(
      text.find(whole), whole.size(),
      "for v in 0..5 { if t < 7 && (t < 6 || v < 2) { part[p, t*5 + v] = a[b, p, t*5 + v]*2.0 @ "
      "part } }");
  ExpectRight(text);
  EXPECT_THAT(Generate(text), HasSubstr("part[t * 5 + v] = "));
}

// Without the first barrier others' sums are not there yet, without the second they are gone.
TEST(Cuda, TheEmulatorSeesMissingBarriersOfACluster) {
  const std::string text(kClusterSum);
  for (const bool last : {false, true}) {
    std::string without = text;
    without.erase(last ? text.rfind("cluster_barrier") : text.find("cluster_barrier"),
                  std::string_view("cluster_barrier").size());
    ASSERT_OK_AND_ASSIGN(const ir::Program program, ir::ParseProgram(without));
    EXPECT_THAT(CompareEmulated(program, 1, 1e-5), StatusIs(StatusCode::kFailedPrecondition, _));
    ASSERT_OK_AND_ASSIGN(const CudaSource source, GenerateCuda(program));
    std::vector<ir::NDArray> buffers = {ir::NDArray(ir::kFloat32, {2, 4, 32}),
                                        ir::NDArray(ir::kFloat32, {2, 32})};
    buffers[0].FillRandom(1, ir::RandomKind::kUniform, 0);
    ASSERT_OK(EmulateCuda(program, source, buffers));
    bool is_poisoned = false;
    for (int64_t i = 0; i < 64; ++i) is_poisoned |= std::isnan(buffers[1].GetDouble(i));
    EXPECT_TRUE(is_poisoned);
  }
}

}  // namespace
}  // namespace kiln::codegen
