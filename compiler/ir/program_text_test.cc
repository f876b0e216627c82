#include "compiler/ir/program_text.h"

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/ir/random_expr_testing.h"
#include "compiler/ir/substitution.h"

namespace kiln::ir {
namespace {
using testing::HasSubstr;

constexpr std::string_view kCpu = R"(program(
  data: input float32[16, 64],
  rows: input int32[16] below 100,
  relu: output float32[16, 4],
  pad: workspace float32[16, 64],
) {
  stage pad
  stage dense auto_unroll 64
  stage dense
  stage relu
  kernel pad {
    parallel `if` in 0..16 {
      vectorize pad.1 in 0..64 {
        pad[`if`, pad.1] = if(1 <= pad.1 && pad.1 < 63, data[`if`, pad.1], 0.0) @ pad
      }
    }
  }
  kernel dense {
    for i0 in 0..16 {
      alloc dense_local: local float32[4]
      alloc scalar: local float32[] {
        scalar[] = -inf @ 1
        dense_local[0] = scalar[] @ 1
      }
      unroll j in 0..4 {
        dense_local[j] = 0.0 @ 2
        for k in 0..64 {
          dense_local[j] = dense_local[j] + pad[i0, k]*float32(rows[i0]) @ 2
        }
      }
      vthread c in 0..4 {
        if i0*4 + c < 50 {
          relu[i0, c] = max(dense_local[c], 0.0) @ relu
        }
      }
    }
  }
}
)";

constexpr std::string_view kGpu = R"(program(
  a: input float16[64],
  b: output float16[64],
) {
  stage copy
  kernel copy grid [4, 1, 1] block [16, 1, 1] min_blocks 2 {
    blockIdx.x bx in 0..4 {
      alloc `for`: shared float16[16]
      threadIdx.x tx in 0..16 {
        `for`[tx] = a[bx*16 + tx] @ copy
      }
      barrier
      threadIdx.x tx_1 in 0..16 {
        b[bx*16 + tx_1] = for[15 - tx_1]*0.1 @ copy
      }
    }
  }
}
)";

TEST(ProgramTextTest, ReadsBack) {
  for (std::string_view text : {kCpu, kGpu, std::string_view("program() {\n}\n")}) {
    ASSERT_OK_AND_ASSIGN(const Program program, ParseProgram(text));
    EXPECT_EQ(ProgramText(program), text);
    ASSERT_OK_AND_ASSIGN(const Program again, ParseProgram(ProgramText(program)));
    EXPECT_TRUE(Equal(program, again));
  }
}

TEST(ProgramTextTest, InstructionsAreByName) {
  constexpr std::string_view kText = R"(program(
  a: input float32[8],
  b: output float32[8],
) {
  stage s
  kernel k {
    for i in 0..4 {
      instruction pair {
        for j in 0..2 {
          b[i*2 + j] = a[i*2 + j] @ s
        }
      }
    }
    for i_1 in 0..4 {
      instruction `for` {
        b[i_1] = 0.0 @ s
      }
    }
  }
}
)";
  ASSERT_OK_AND_ASSIGN(const Program program, ParseProgram(kText));
  EXPECT_EQ(ProgramText(program), kText);
  EXPECT_THAT(program.instructions, testing::ElementsAre("pair", "for"));
  // Another instruction is another program.
  std::string other(kText);
  other.replace(other.find("pair"), 4, "both");
  ASSERT_OK_AND_ASSIGN(const Program others, ParseProgram(other));
  EXPECT_FALSE(Equal(program, others));
}

TEST(ProgramTextTest, ReadsFreely) {
  ASSERT_OK_AND_ASSIGN(const Program program,
                       ParseProgram("program(b: output float32[4]) { stage s # the only one\n"
                                    "kernel k { for i in 0..4 { b[i] = 1 @ s } } }"));
  EXPECT_THAT(ProgramText(program), HasSubstr("b[i] = 1.0 @ s\n"));
}

std::string WithStatement(std::string_view statement) {
  return fmt::format(
      "program(a: input float32[4], b: output float32[4, 2]) {{\nstage s\nstage t\nstage t\nkernel "
      "k {{\n{}\n}}\n}}",
      statement);
}

TEST(ProgramTextTest, ErrorsNameThePlace) {
  const std::pair<std::string, std::string_view> kCases[] = {
      {"", "line 1, column 1: expected 'program', found the end"},
      {"program(a: input float32[4]", "expected ',' or ')' after the buffer, found the end"},
      {"program(a: local float32[4]) {}",
       "column 12: expected 'input', 'output' or 'workspace', found 'local'"},
      {"program(a: input float9[4]) {}", "column 18: unknown type 'float9'"},
      {"program(a: input float32[0]) {}", "column 26: expected an extent from 1 to"},
      {"program(a: input float32[4], a: input float32[4]) {}",
       "column 30: a buffer named 'a' exists already"},
      {"program(a: input float32[4] below 3) {}",
       "the program is not valid: buffer 'a' (input float32) has index"},
      {"program() { kernel k grid [1, 2] {} }", "column 27: expected 3 sizes, found 2"},
      {"program() { kernel k {} kernel k {} }", "two kernels are named 'k'"},
      {WithStatement("c[0] = 1.0 @ s"), "line 6, column 1: unknown buffer 'c'"},
      {WithStatement("b[0; 1] = 1.0 @ s"),
       "line 6, column 4: expected ']' after the index list, found ';'"},
      {WithStatement("b[0, 1] = a[k] @ s"), "line 6, column 13: unknown variable 'k'"},
      {WithStatement("b[0, 1] = 1.0"),
       "line 7, column 1: expected '@' and the stage after the value, found '}'"},
      {WithStatement("b[0, 1] = 1.0 @ u"), "line 6, column 17: unknown stage 'u'"},
      {WithStatement("b[0, 1] = 1.0 @ t"), "there are several stages 't': use the number"},
      {WithStatement("b[0, 1] = 1.0 @ 3"), "expected a stage from 0 to 2, found 3"},
      {WithStatement("b[0] = 1.0 @ s"), "a store of 'b' has 1 indices, its rank is 2"},
      {WithStatement("for i in 1..4 {}"), "line 6, column 10: expected 0 from 0 to 0, found 1"},
      {WithStatement("for i in 0..4 {} for i in 0..4 {}"),
       "column 22: a loop over 'i' exists already"},
      {WithStatement("alloc c: output float32[4]"),
       "expected 'shared', 'cluster' or 'local', found 'output'"},
      {WithStatement("if 3 {}"), "line 6, column 4: expected bool, found 3"},
      {WithStatement("a[0] = 1.0 @ s"), "a store of 'a', which is an input"},
      {WithStatement("instruction {}"), "expected the name of an instruction, found '{'"},
      {WithStatement("instruction x { barrier }"),
       "the body of instruction 'x' has more than loops of a thread, conditions and stores"},
      {WithStatement("instruction x { instruction y { b[0, 1] = 1.0 @ s } }"),
       "the body of instruction 'x' has more than"},
      {WithStatement("5"), "line 6, column 1: expected a statement, found '5'"},
  };
  for (const auto& [text, message] : kCases) {
    EXPECT_THAT(ParseProgram(text),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(std::string(message))))
        << text;
  }
}

TEST(ProgramTextTest, DeepStatementsAreRefused) {
  std::string text = "program() { kernel k { ";
  for (int i = 0; i < 100000; ++i) text += fmt::format("for i{} in 0..2 {{ ", i);
  EXPECT_THAT(ParseProgram(text),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("nest deeper than 200")));
}

// Makes random programs of any statements around random expressions.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : rng_(seed) {
    p_.pool = std::make_shared<ExprPool>();
    p_.buffers = {{"in 1", kFloat32, {4, 4}, Scope::kInput, 0},
                  {"idx", kInt64, {4}, Scope::kInput, 4},
                  {"out", kFloat16, {4}, Scope::kOutput, 0},
                  {"for", kFloat32, {2, 3}, Scope::kWorkspace, 0}};
    p_.stages = {{"a"}, {"b c", {{Hint::kUnroll, 16}}}, {"a"}};
    for (int k = 0; k < 2; ++k) {
      p_.kernels.push_back({fmt::format("k{}", k), nullptr});
      p_.kernels.back().body = Make(4);
    }
  }
  const Program& program() const { return p_; }

 private:
  Expr AnyExpr(Type type) {
    std::vector<RandomSlot> slots = {{kFloat32, 2}, {kInt64, 1}, {kFloat16, 1}, {kFloat32, 2}};
    RandomExprs make(*p_.pool, rng_, std::ssize(vars_), slots);
    Expr e = make.Make(type, 3);
    Substitution bound;
    for (int32_t var : vars_) bound.vars.push_back(p_.pool->Var(var));
    return p_.pool->Substitute(e, bound);
  }

  Stmt Make(int depth) {
    ExprPool& pool = *p_.pool;
    const int64_t kind = depth == 0 ? 5 : UniformInt(rng_, 7);
    if (kind <= 1) {
      const auto var = static_cast<int32_t>(p_.vars.size());
      p_.vars.push_back({fmt::format("{}{}", Chance(rng_, 0.2) ? "odd name " : "i.", var),
                         UniformIn(rng_, 1, 9)});
      static constexpr LoopKind kKinds[] = {LoopKind::kSerial, LoopKind::kUnrolled,
                                            LoopKind::kVThread};
      vars_.push_back(var);
      const Stmt body = Make(depth - 1);
      vars_.pop_back();
      return MakeFor(pool, var, p_.vars[var].extent, kKinds[UniformInt(rng_, 3)], body);
    }
    if (kind == 2) {
      const auto slot = static_cast<int32_t>(p_.buffers.size());
      p_.buffers.push_back({fmt::format("local{}", slot), kFloat32, {2}, Scope::kLocal, 0});
      const Expr zero[] = {pool.Int(0)};
      const Stmt body[] = {MakeStore(pool, slot, 0, zero, pool.Float(1)), Make(depth - 1)};
      return MakeAlloc(pool, slot, MakeSeq(pool, std::span(body).first(UniformIn(rng_, 1, 2))));
    }
    if (kind == 3) return MakeIf(pool, AnyExpr(kBool), Make(depth - 1));
    if (kind == 4) {
      std::vector<Stmt> children;
      for (int64_t n = UniformInt(rng_, 4); n > 0; --n) children.push_back(Make(depth - 1));
      return MakeSeq(pool, children);
    }
    if (kind == 6) return MakeBarrier(pool);
    const Expr index[] = {AnyExpr(kIndex)};
    return MakeStore(pool, 2, static_cast<int32_t>(UniformInt(rng_, 3)), index, AnyExpr(kFloat16));
  }

  Rng rng_;
  Program p_;
  std::vector<int32_t> vars_;
};

TEST(ProgramTextTest, RandomProgramsReadBack) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const Program program = RandomProgram(seed).program();
    ASSERT_OK(Verify(program));
    const std::string text = ProgramText(program);
    const StatusOr<Program> parsed = ParseProgram(text);
    ASSERT_TRUE(parsed.ok()) << "seed " << seed << "\n" << text << parsed.status();
    ASSERT_EQ(ProgramText(*parsed), text) << "seed " << seed;
    ASSERT_TRUE(Equal(*parsed, program)) << "seed " << seed << "\n" << text;
  }
}

TEST(ProgramTextTest, MutatedTextNeverCrashes) {
  int parsed_count = 0;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Rng rng(seed);
    std::string text(seed % 2 ? kCpu : kGpu);
    for (int64_t n = UniformIn(rng, 1, 3); n > 0; --n) {
      const auto at = static_cast<size_t>(UniformInt(rng, std::ssize(text)));
      const auto from = static_cast<size_t>(UniformInt(rng, std::ssize(text)));
      switch (UniformInt(rng, 4)) {
        case 0:
          text.insert(at, text.substr(from, static_cast<size_t>(UniformInt(rng, 40))));
          break;
        case 1:
          text.erase(at, static_cast<size_t>(UniformInt(rng, 20)));
          break;
        case 2:
          text[at] = text[from];
          break;
        default:
          text[at] = static_cast<char>(rng());
      }
    }
    const StatusOr<Program> program = ParseProgram(text);
    if (!program.ok()) continue;
    ++parsed_count;
    ASSERT_OK_AND_ASSIGN(const Program again, ParseProgram(ProgramText(*program)));
    ASSERT_TRUE(Equal(*program, again)) << "seed " << seed;
  }
  EXPECT_GT(parsed_count, 50);
}

TEST(ProgramTextTest, Warps) {
  constexpr std::string_view kText = R"(program(
  b: output float32[64],
) {
  stage s
  kernel k grid [1, 1, 1] block [64, 1, 1] {
    threadIdx.x t in 0..64 {
      warp_barrier
      b[t] = 1.0 @ s
    }
  }
}
)";
  ASSERT_OK_AND_ASSIGN(const Program program, ParseProgram(kText));
  EXPECT_EQ(ProgramText(program), kText);
  std::string other(kText);
  other.replace(other.find("warp_barrier"), 12, "barrier");
  ASSERT_OK_AND_ASSIGN(const Program block, ParseProgram(other));
  EXPECT_FALSE(Equal(program, block));
}

TEST(ProgramTextTest, Clusters) {
  constexpr std::string_view kText = R"(program(
  a: input float32[4, 2],
  b: output float32[4, 2],
) {
  stage s
  kernel k grid [1, 1, 1] block [2, 1, 1] cluster 4 {
    alloc c: cluster float32[4, 2]
    cluster p in 0..4 {
      threadIdx.x t in 0..2 {
        c[p, t] = a[p, t] @ s
      }
    }
    cluster_barrier
    cluster q in 0..4 {
      threadIdx.x u in 0..2 {
        b[q, u] = c[3 - q, u] @ s
      }
    }
    cluster_barrier
  }
}
)";
  ASSERT_OK_AND_ASSIGN(const Program program, ParseProgram(kText));
  EXPECT_EQ(ProgramText(program), kText);
  const auto refuses = [&](std::string_view from, std::string_view to, std::string_view message) {
    std::string text(kText);
    text.replace(text.find(from), from.size(), to);
    EXPECT_THAT(ParseProgram(text),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(std::string(message))));
  };
  refuses("c[p, t] =", "c[0, t] =", "a store of 'c' that is not to the own block's part");
  refuses("cluster float32[4, 2]", "cluster float32[2, 4]",
          "buffer 'c' has no part for each of the 4 blocks of a cluster");
  refuses("cluster p in 0..4", "cluster p in 0..2",
          "loop 'p' of extent 2 is bound to the 4 blocks of a cluster");
}

}  // namespace
}  // namespace kiln::ir
