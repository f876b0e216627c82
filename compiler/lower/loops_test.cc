// The passes on loop kinds, on programs written by hand.
#include "compiler/lower/loops.h"

#include "base/status_testing.h"
#include "compiler/ir/program_text.h"

namespace kiln::lower {
namespace {

constexpr std::string_view kHead = R"(program(
  A: input float32[4, 8, 8],
  B: output float32[4, 8, 8],
) {
)";

ir::Program Parse(std::string_view stages, std::string_view body) {
  StatusOr<ir::Program> program =
      ir::ParseProgram(fmt::format("{}{}kernel B {{\n{}\n}}\n}}\n", kHead, stages, body));
  KILN_CHECK(program.ok(), "{}", Message(program.status()));
  return *std::move(program);
}

// Runs the pass on `before` and compares the whole text with `after`.
template <typename Pass>
void ExpectRewritten(std::string_view stages, std::string_view before, std::string_view after,
                     const Pass& pass) {
  ir::Program program = Parse(stages, before);
  pass(program);
  EXPECT_OK(ir::Verify(program));
  EXPECT_EQ(ir::ProgramText(program), ir::ProgramText(Parse(stages, after)));
}

void ExpectSerialized(std::string_view before, std::string_view after) {
  // The program is not parsed by Parse, because nested parallel loops are not legal yet.
  ir::Program program = Parse("stage B\n", after);
  ir::ExprPool& pool = *program.pool;
  // The kinds of `before`, outermost first.
  std::vector<ir::LoopKind> kinds;
  for (char c : before) {
    kinds.push_back(c == 'p'   ? ir::LoopKind::kParallel
                    : c == 'v' ? ir::LoopKind::kVectorized
                    : c == 'u' ? ir::LoopKind::kUnrolled
                               : ir::LoopKind::kSerial);
  }
  std::vector<ir::Stmt> loops;
  ir::Stmt s = program.kernels[0].body;
  for (; s->kind == ir::StmtKind::kFor; s = s->body()) loops.push_back(s);
  ASSERT_EQ(loops.size(), kinds.size());
  for (size_t i = loops.size(); i-- > 0;) {
    s = ir::MakeFor(pool, loops[i]->var, loops[i]->extent, kinds[i], s);
  }
  program.kernels[0].body = s;
  SerializeNestedParallel(program);
  EXPECT_OK(ir::Verify(program));
  EXPECT_EQ(ir::ProgramText(program), ir::ProgramText(Parse("stage B\n", after)));
}

constexpr std::string_view kNest = R"(
    {} i in 0..4 {{ {} j in 0..8 {{ {} k in 0..8 {{ B[i, j, k] = A[i, j, k] @ B }} }} }})";

std::string Nest(std::string_view i, std::string_view j, std::string_view k) {
  return fmt::format(fmt::runtime(kNest), i, j, k);
}

TEST(SerializeNestedParallel, OnlyTheOutermostStays) {
  ExpectSerialized("ppp", Nest("parallel", "for", "for"));
  ExpectSerialized("psp", Nest("parallel", "for", "for"));
}

TEST(SerializeNestedParallel, InsideSerialLoopsItStays) {
  ExpectSerialized("ssp", Nest("for", "for", "parallel"));
  ExpectSerialized("spv", Nest("for", "parallel", "vectorize"));
}

TEST(SerializeNestedParallel, NotInsideUnrolledOrVectorizedLoops) {
  ExpectSerialized("sup", Nest("for", "unroll", "for"));
  ExpectSerialized("svp", Nest("for", "vectorize", "for"));
}

TEST(SerializeNestedParallel, LoopsSideBySideAreIndependent) {
  const std::string_view body = R"(
      parallel i in 0..4 { B[i, 0, 0] = A[i, 0, 0] @ B }
      parallel j in 0..4 { B[j, 1, 0] = A[j, 1, 0] @ B })";
  ExpectRewritten("stage B\n", body, body, SerializeNestedParallel);
}

void LegalizeTo8Lanes(ir::Program& program) { LegalizeVectorized(program, 8); }

TEST(LegalizeVectorized, StoresConditionsAndPlainLoopsFit) {
  const std::string_view body = R"(
      for i in 0..4 { vectorize j in 0..8 {
        if j < 5 { B[i, j, 0] = A[i, j, 0] @ B }
        for k in 0..7 { B[i, j, k + 1] = A[i, j, k] @ B }
        unroll k1 in 0..2 { B[i, j, k1] = A[i, j, k1] @ B }
      } })";
  ExpectRewritten("stage B\n", body, body, LegalizeTo8Lanes);
}

TEST(LegalizeVectorized, TooManyLanes) {
  const auto body = [](std::string_view kind) {
    return fmt::format("{} i in 0..9 {{ B[0, 0, i // 2] = A[0, 0, i // 2] @ B }}", kind);
  };
  ExpectRewritten("stage B\n", body("vectorize"), body("for"), LegalizeTo8Lanes);
}

TEST(LegalizeVectorized, AnAllocationDoesNotFit) {
  const auto body = [](std::string_view kind) {
    return fmt::format(R"({} i in 0..4 {{
        alloc t: local float32[1]
        t[0] = A[i, 0, 0] @ B
        B[i, 0, 0] = t[0] @ B
      }})",
                       kind);
  };
  ExpectRewritten("stage B\n", body("vectorize"), body("for"), LegalizeTo8Lanes);
}

TEST(LegalizeVectorized, OfTwoNestedLoopsTheInnerStays) {
  ir::Program program = Parse("stage B\n", Nest("for", "for", "vectorize"));
  ir::Stmt i = program.kernels[0].body, j = i->body();
  j = ir::MakeFor(*program.pool, j->var, j->extent, ir::LoopKind::kVectorized, j->body());
  program.kernels[0].body = ir::MakeFor(*program.pool, i->var, i->extent, i->loop_kind, j);
  LegalizeTo8Lanes(program);
  EXPECT_OK(ir::Verify(program));
  EXPECT_EQ(ir::ProgramText(program),
            ir::ProgramText(Parse("stage B\n", Nest("for", "for", "vectorize"))));
}

// Every variable belongs to stage 0, except for those listed.
struct Unroll {
  std::vector<int32_t> stage_of_var = {};
  void operator()(ir::Program& program) const {
    std::vector<int32_t> stages = stage_of_var;
    stages.resize(program.vars.size(), 0);
    AutoUnroll(program, stages);
  }
};

TEST(AutoUnroll, FromTheInnermostOutwardWhileStoresFit) {
  ExpectRewritten("stage B auto_unroll 64\n", Nest("for", "for", "for"),
                  Nest("for", "unroll", "unroll"), Unroll());
  ExpectRewritten("stage B auto_unroll 63\n", Nest("for", "for", "for"),
                  Nest("for", "for", "unroll"), Unroll());
  ExpectRewritten("stage B auto_unroll 7\n", Nest("for", "for", "for"), Nest("for", "for", "for"),
                  Unroll());
  ExpectRewritten("stage B auto_unroll 256\n", Nest("for", "for", "for"),
                  Nest("unroll", "unroll", "unroll"), Unroll());
}

TEST(VectorizeStores, OfRegistersToConsecutiveElements) {
  const auto nest = [](std::string_view kind, std::string_view body) {
    return fmt::format(
        "for i in 0..4 {{ alloc r: local float32[8, 8] for j in 0..8 {{ {} k in 0..8 {{ {} }} }} "
        "}}",
        kind, body);
  };
  const auto pass = [](ir::Program& program) { VectorizeStores(program, 8); };
  for (const char* body :
       {"B[i, j, k] = r[j, k] @ B", "if i < 3 { B[i, 0, k] = r[k, j] + A[j, 0, k] @ B }",
        "B[i, 3, k] = max(r[j, 7 - k], 0.0) @ B"}) {
    ExpectRewritten("stage B\n", nest("for", body), nest("vectorize", body), pass);
  }
  // The stores are strided, copied from another buffer, accumulated, of one register, or into
  // registers.
  for (const char* body : {"B[i, k, 0] = r[j, k] @ B", "B[i, k, k] = r[j, k] @ B",
                           "B[i, j, k] = A[i, j, k] @ B", "B[i, j, k] = B[i, j, k] + r[j, k] @ B",
                           "B[i, j, k] = r[0, 0] @ B", "r[j, k] = A[i, j, k] @ B"}) {
    ExpectRewritten("stage B\n", nest("for", body), nest("for", body), pass);
  }
  // The rows are not innermost.
  const auto swapped = [](std::string_view loops) {
    return fmt::format(
        "for i in 0..4 {{ alloc r: local float32[8, 8] {} {{ B[i, k, j * 2 - j] = r[j, k] @ B }} "
        "}} }}",
        loops);
  };
  ExpectRewritten("stage B\n", swapped("unroll j in 0..8 { for k in 0..8"),
                  swapped("for k in 0..8 { vectorize j in 0..8"), pass);
}

TEST(VectorizeStores, OfAllOutputsOfAStageOrNone) {
  const auto program = [](std::string_view kind, std::string_view second) {
    return fmt::format(
        "program(A: input float32[4, 8], B: output float32[4, 8], C: output float32[4, 8]) {{ "
        "stage "
        "B kernel B {{ for i in 0..4 {{ alloc r: local float32[8] {} k in 0..8 {{ if i < 3 {{ B[i, "
        "k] = r[k] + A[i, k] @ B {} @ B }} }} }} }} }}",
        kind, second);
  };
  const auto vectorized = [&](std::string_view second) {
    StatusOr<ir::Program> parsed = ir::ParseProgram(program("for", second));
    KILN_CHECK(parsed.ok(), "{}", Message(parsed.status()));
    VectorizeStores(*parsed, 8);
    EXPECT_OK(ir::Verify(*parsed));
    return ir::ProgramText(*parsed);
  };
  const auto text = [&](std::string_view kind, std::string_view second) {
    return ir::ProgramText(*ir::ParseProgram(program(kind, second)));
  };
  const std::string_view function = "C[i, k] = max(r[k] + A[i, k], 0.0)";
  EXPECT_EQ(vectorized(function), text("vectorize", function));
  // The second store is strided, reads the result of the first one, or goes into the same buffer.
  for (const std::string_view second :
       {"C[k // 2, i] = r[k]", "C[i, k] = B[i, k] + r[k]", "B[i, k] = r[k]"}) {
    EXPECT_EQ(vectorized(second), text("for", second));
  }
}

TEST(VectorizeLoads, OfConsecutiveTermsIntoRegisters) {
  const auto nest = [](std::string_view loops, std::string_view body) {
    return fmt::format("for i in 0..4 {{ alloc r: local float32[8, 8] {} {{ {} }} }} }}", loops,
                       body);
  };
  const auto pass = [](ir::Program& program) { VectorizeLoads(program, 8); };
  const std::string_view results = "for j in 0..8 { for k in 0..8",
                         vectors = "for j in 0..8 { vectorize k in 0..8";
  // The loop is over several results, or over the terms of one, in their order.
  for (const char* body :
       {"r[0, k] = r[0, k] + A[i, j, k] @ B", "r[0, 0] = r[0, 0] + A[i, j, k] @ B",
        "if j < 3 { r[j, k] = max(r[j, k], A[i, 0, k] * A[i, k, 0]) @ B }"}) {
    ExpectRewritten("stage B\n", nest(results, body), nest(vectors, body), pass);
  }
  // A loop over results goes inside. A loop over terms stays at its place.
  const std::string_view outer = "for k in 0..8 { for j in 0..8";
  const std::string_view sum = "r[0, k] = r[0, k] + A[i, j, k] @ B",
                         all = "r[0, 0] = r[0, 0] + A[i, j, k] @ B";
  ExpectRewritten("stage B\n", nest(outer, sum), nest(vectors, sum), pass);
  ExpectRewritten("stage B\n", nest(outer, all), nest(outer, all), pass);
  // The stores are not into registers, no sum, from registers, strided, or under a condition of one
  // lane.
  for (const char* body : {"B[i, j, k] = B[i, j, k] + A[i, j, k] @ B", "r[j, k] = A[i, j, k] @ B",
                           "r[j, k] = r[j, k] + r[k, j] @ B", "r[j, k] = r[j, k] + A[i, k, 0] @ B",
                           "if k < 3 { r[j, k] = r[j, k] + A[i, j, k] @ B }"}) {
    ExpectRewritten("stage B\n", nest(results, body), nest(results, body), pass);
  }
}

// Bytes of which a factor of a product is computed are read as words of shared memory; units of
// several threads read their own.
TEST(VectorizeLoads, OfBytesOfComputedFactors) {
  const auto program = [](std::string_view kind, std::string_view hint, std::string_view factor) {
    return fmt::format(
        "program(X: input float16[8], W: input int8[8, 8], B: output float32[8]) {{ stage w stage "
        "B {} "
        "kernel k grid [1, 1, 1] block [8, 1, 1] {{ threadIdx.x t in 0..8 {{ "
        "alloc r: local float32[8] alloc w: shared int8[8, 8] "
        "for i in 0..8 {{ w[i, t] = W[i, t] @ w }} barrier for z in 0..8 {{ r[z] = 0.0 @ B }} "
        "for k in 0..8 {{ {} j in 0..8 {{ r[j] = r[j] + float32(X[k])*float32({}) @ B }} }} "
        "B[t] = r[0] @ B }} }} }}",
        hint, kind, factor);
  };
  const auto vectorized = [&](std::string_view hint, std::string_view factor) {
    StatusOr<ir::Program> parsed = ir::ParseProgram(program("for", hint, factor));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    if (!parsed.ok()) return std::string();
    VectorizeLoads(*parsed, 8);
    return ir::ProgramText(*parsed);
  };
  const auto text = [&](std::string_view kind, std::string_view hint, std::string_view factor) {
    return ir::ProgramText(*ir::ParseProgram(program(kind, hint, factor)));
  };
  const std::string_view bytes = "float16(w[k, j])*float16(0.5)";
  EXPECT_EQ(vectorized("", bytes), text("vectorize", "", bytes));
  EXPECT_EQ(vectorized("matrix_unit 1", bytes), text("for", "matrix_unit 1", bytes));
  const std::string_view strided = "float16(w[j, k])*float16(0.5)";
  EXPECT_EQ(vectorized("", strided), text("for", "", strided));
}

TEST(VectorizeLoads, OfTheTermsOfSeveralSums) {
  const auto nest = [](std::string_view loop, std::string_view body) {
    return fmt::format(
        "for i in 0..4 {{ alloc r: local float32[8] {{ alloc q: local float32[8] {{ for j in 0..8 "
        "{{ {} k in 0..8 {{ {} }} }} }} }} }}",
        loop, body);
  };
  const auto pass = [](ir::Program& program) { VectorizeLoads(program, 8); };
  for (const char* body : {"r[0] = r[0] + A[i, j, k] @ B q[0] = q[0] + A[i, j, k] * A[i, j, k] @ B",
                           "r[k] = r[k] + A[i, j, k] @ B q[k] = q[k] + 1.0 @ B",
                           "r[0] = r[0] + A[i, j, k] @ B q[0] = max(q[0], r[0]) @ B"}) {
    ExpectRewritten("stage B\n", nest("for", body), nest("vectorize", body), pass);
  }
  // One of them is no sum, or is in memory.
  for (const char* body : {"r[0] = r[0] + A[i, j, k] @ B q[0] = A[i, j, k] @ B",
                           "r[0] = r[0] + A[i, j, k] @ B B[i, j, 0] = B[i, j, 0] + 1.0 @ B"}) {
    ExpectRewritten("stage B\n", nest("for", body), nest("for", body), pass);
  }
}

TEST(AutoUnroll, WithoutAPragmaNothingChanges) {
  ExpectRewritten("stage B\n", Nest("for", "for", "for"), Nest("for", "for", "for"), Unroll());
}

TEST(AutoUnroll, AVectorizedLoopIsOneStep) {
  ExpectRewritten("stage B auto_unroll 8\n", Nest("for", "for", "vectorize"),
                  Nest("for", "unroll", "vectorize"), Unroll());
}

TEST(AutoUnroll, AnUnrolledLoopCountsItsStores) {
  ExpectRewritten("stage B auto_unroll 63\n", Nest("for", "for", "unroll"),
                  Nest("for", "for", "unroll"), Unroll());
  ExpectRewritten("stage B auto_unroll 64\n", Nest("for", "for", "unroll"),
                  Nest("for", "unroll", "unroll"), Unroll());
}

TEST(AutoUnroll, AParallelLoopStaysAndSoDoLoopsAroundIt) {
  ExpectRewritten("stage B auto_unroll 512\n", Nest("for", "parallel", "for"),
                  Nest("for", "parallel", "unroll"), Unroll());
}

TEST(AutoUnroll, ALoopAroundOneThatStaysIsNotUnrolled) {
  // k has 8 steps, above the limit of 4; i alone would fit.
  const std::string_view body = R"(
      for i in 0..2 {
        for k in 0..8 { B[i, 0, k] = A[i, 0, k] @ B }
      })";
  ExpectRewritten("stage B auto_unroll 4\n", body, body, Unroll());
}

TEST(AutoUnroll, StoresSideBySideAddUp) {
  const auto body = [](std::string_view kind) {
    return fmt::format(R"({} i in 0..4 {{
        B[i, 0, 0] = A[i, 0, 0] @ B
        if i < 3 {{ B[i, 1, 0] = A[i, 1, 0] @ B }}
      }})",
                       kind);
  };
  ExpectRewritten("stage B auto_unroll 8\n", body("for"), body("unroll"), Unroll());
  ExpectRewritten("stage B auto_unroll 7\n", body("for"), body("for"), Unroll());
}

TEST(AutoUnroll, TheLimitIsThatOfTheLoopsStage) {
  // Loop 1 (j) is a loop of stage `other`, which has no pragma.
  ExpectRewritten("stage B auto_unroll 512\nstage other\n", Nest("for", "for", "for"),
                  Nest("for", "for", "unroll"), Unroll{{0, 1, 0}});
}

TEST(AutoUnroll, AtMostNineLoopsDeep) {
  // The tenth loop from inside contains a nest of nine around the store.
  std::string before, after;
  for (int i = 0; i < 11; ++i) {
    before += fmt::format("for i{} in 0..1 {{ ", i);
    after += fmt::format("{} i{} in 0..1 {{ ", i < 2 ? "for" : "unroll", i);
  }
  const std::string tail = "B[0, 0, 0] = A[0, 0, 0] @ B" + std::string(11, '}');
  ExpectRewritten("stage B auto_unroll 16\n", before + tail, after + tail, Unroll());
}

}  // namespace
}  // namespace kiln::lower
