#include "base/status_testing.h"
#include "compiler/ir/program.h"

namespace kiln::ir {
namespace {
using testing::HasSubstr;

// Each test breaks one thing in this program:
// for i in 0..4 { alloc t: local float32[2]; t[0] = a[i] @ s; b[i] = t[0] @ s }
class VerifyTest : public testing::Test {
 protected:
  VerifyTest() {
    p_.pool = std::make_shared<ExprPool>();
    p_.vars = {{"i", 4}, {"j", 2}};
    p_.buffers = {{"a", kFloat32, {4}, Scope::kInput, 0},
                  {"b", kFloat32, {4}, Scope::kOutput, 0},
                  {"t", kFloat32, {2}, Scope::kLocal, 0},
                  {"n", kInt32, {4}, Scope::kLocal, 0}};
    p_.stages = {{"s", {{Hint::kUnroll, 16}}}};
    p_.kernels = {{"main", nullptr}};
    i_ = pool().Var(0);
    zero_ = pool().Int(0);
    SetBody(Loop(Alloc(Seq(Store(2, {zero_}, Load(0, {i_})), Store(1, {i_}, Load(2, {zero_}))))));
  }

  ExprPool& pool() { return *p_.pool; }
  Expr Load(int32_t slot, std::vector<Expr> indices, Type type = kFloat32) {
    return pool().Load(slot, indices, type);
  }
  Stmt Store(int32_t slot, std::vector<Expr> indices, Expr value, int32_t stage = 0) {
    return MakeStore(pool(), slot, stage, indices, value);
  }
  Stmt Seq(Stmt a, Stmt b) {
    const Stmt children[] = {a, b};
    return MakeSeq(pool(), children);
  }
  Stmt Alloc(Stmt body, int32_t slot = 2) { return MakeAlloc(pool(), slot, body); }
  Stmt Loop(Stmt body, LoopKind kind = LoopKind::kSerial, int32_t var = 0, int64_t extent = 4) {
    return MakeFor(pool(), var, extent, kind, body);
  }
  Stmt StoreB(Expr index) { return Store(1, {index}, pool().Float(1)); }
  void SetBody(Stmt body) { p_.kernels[0].body = body; }

  void ExpectRefused(std::string_view message) {
    EXPECT_THAT(Verify(p_), StatusIs(StatusCode::kInternal, HasSubstr(std::string(message))));
  }
  void ExpectRefused(Stmt body, std::string_view message) {
    SetBody(body);
    ExpectRefused(fmt::format("kernel 'main': {}", message));
  }

  Program p_;
  Expr i_, zero_;
};

TEST_F(VerifyTest, AcceptsAGoodProgram) { EXPECT_OK(Verify(p_)); }

TEST_F(VerifyTest, Instructions) {
  p_.instructions = {"copy"};
  SetBody(Loop(MakeInstruction(pool(), 0, StoreB(i_))));
  EXPECT_OK(Verify(p_));
  ExpectRefused(Loop(MakeInstruction(pool(), 1, StoreB(i_))), "instruction 1 does not exist");
  constexpr std::string_view kMore = "the body of instruction 'copy' has more than loops";
  const Stmt vectors = Loop(StoreB(i_), LoopKind::kVectorized);
  for (const Stmt body : {MakeBarrier(pool()), Alloc(StoreB(zero_)), vectors})
    ExpectRefused(MakeInstruction(pool(), 0, body), kMore);
  p_.instructions = {"copy", "copy"};
  ExpectRefused("two instructions are named 'copy'");
  p_.instructions = {""};
  ExpectRefused("an instruction has no name");
}

TEST_F(VerifyTest, Tables) {
  const Program good = p_;
  auto refused = [&](auto change, std::string_view message) {
    p_ = good;
    change(p_);
    ExpectRefused(message);
  };
  refused([](Program& p) { p.pool = nullptr; }, "the program has no pool");
  refused([](Program& p) { p.vars[1].name = "i"; }, "two variables are named 'i'");
  refused([](Program& p) { p.vars[1].extent = 0; }, "variable 'j' has extent 0");
  refused([](Program& p) { p.buffers[1].name = "a"; }, "two buffers are named 'a'");
  refused([](Program& p) { p.buffers[1].shape = {4, 0}; }, "buffer 'b' has an extent of 0");
  refused([](Program& p) { p.buffers[1].shape = {1 << 30, 1 << 30, 1 << 30}; },
          "buffer 'b' is larger than");
  refused([](Program& p) { std::swap(p.buffers[1], p.buffers[2]); },
          "buffer 'b' (output) comes after a buffer of scope local");
  refused([](Program& p) { p.buffers[0].scope = Scope::kWorkspace; },
          "buffer 'b' (output) comes after a buffer of scope workspace");
  refused([](Program& p) { p.buffers[0].index_limit = 3; },
          "buffer 'a' (input float32) has index limit 3");
  refused([](Program& p) { p.stages[0].hints[Hint::kUnroll] = -1; },
          "stage 's': auto_unroll is -1, expected 0 to 2147483647");
  for (const HintRow& row : kHints) {
    const bool of_stage = row.place == HintPlace::kStage;
    const auto in = [&](Program& p, bool stage) -> Hints& {
      return stage ? p.stages[0].hints : p.kernels[0].hints;
    };
    refused([&](Program& p) { in(p, of_stage)[row.hint] = -1; },
            fmt::format("{} is -1, expected 0 to {}", row.word, row.most).c_str());
    refused([&](Program& p) { in(p, !of_stage)[row.hint] = 1; },
            fmt::format("{} is 1, expected 0 to 0", row.word).c_str());
  }
  refused([](Program& p) { p.kernels.push_back(p.kernels[0]); }, "two kernels are named 'main'");
  refused([](Program& p) { p.kernels[0].name = "a b"; }, "the name is not an identifier");
  refused([](Program& p) { p.kernels[0].grid[1] = 0; }, "launch dimensions are 0 x 1");
  refused([](Program& p) { p.kernels[0].body = nullptr; }, "a statement is missing");
}

TEST_F(VerifyTest, Loops) {
  ExpectRefused(Loop(StoreB(i_), LoopKind::kSerial, 7), "a loop over variable 7");
  ExpectRefused(Loop(StoreB(i_), LoopKind::kSerial, 0, 5),
                "the loop over 'i' has extent 5, the variable 4");
  ExpectRefused(Loop(Loop(StoreB(i_))), "variable 'i' is bound by two loops");
  ExpectRefused(Seq(Loop(StoreB(i_)), Loop(StoreB(i_))), "variable 'i' is bound by two loops");
  ExpectRefused(Loop(Loop(StoreB(i_), LoopKind::kParallel), LoopKind::kVectorized, 1, 2),
                "parallel loop 'i' is inside a loop of kind vectorize");
  ExpectRefused(Loop(Loop(StoreB(i_), LoopKind::kParallel), LoopKind::kParallel, 1, 2),
                "parallel loop 'i' is inside a loop of kind parallel");
  ExpectRefused(Loop(Loop(StoreB(i_), LoopKind::kVectorized), LoopKind::kVectorized, 1, 2),
                "vectorized loop 'i' is inside another");
  p_.kernels[0].grid = {4, 2, 1};
  ExpectRefused(Loop(Loop(StoreB(i_), LoopKind::kBlockX), LoopKind::kParallel, 1, 2),
                "loop 'i' is bound to blockIdx.x inside a parallel loop");
  p_.vars[1].extent = 4;
  ExpectRefused(Loop(Loop(StoreB(i_), LoopKind::kBlockX), LoopKind::kBlockX, 1, 4),
                "loop 'i' is bound to blockIdx.x, and so is a loop around it");
  ExpectRefused(Loop(StoreB(i_), LoopKind::kThreadZ),
                "loop 'i' of extent 4 is bound to threadIdx.z of size 1");
  SetBody(Loop(StoreB(i_), LoopKind::kBlockX));
  EXPECT_OK(Verify(p_));
}

TEST_F(VerifyTest, Accesses) {
  const Expr f = pool().Float(1);
  ExpectRefused(Loop(Store(9, {i_}, f)), "a store of buffer 9");
  ExpectRefused(Loop(Store(1, {i_, i_}, f)), "a store of 'b' has 2 indices, its rank is 1");
  ExpectRefused(Loop(Store(1, {f}, f)), "a store of 'b' has an index of type float32");
  ExpectRefused(Loop(Store(1, {i_}, pool().Float(1, kFloat16))),
                "a store of 'b' is float16, the buffer float32");
  ExpectRefused(Loop(Store(0, {i_}, f)), "a store of 'a', which is an input");
  ExpectRefused(Loop(Store(1, {i_}, f, 1)), "a store of 'b' belongs to stage 1");
  ExpectRefused(Loop(Store(2, {zero_}, f)), "a store of 't' stands outside its alloc");
  ExpectRefused(Loop(Store(1, {i_}, Load(2, {zero_}))), "a load of 't' stands outside its alloc");
  ExpectRefused(Loop(Store(1, {i_}, Load(9, {zero_}))), "a load of buffer 9");
  ExpectRefused(Loop(Store(1, {i_}, Load(0, {}))), "a load of 'a' has 0 indices, its rank is 1");
  ExpectRefused(Loop(Store(1, {Load(0, {i_}, kInt32)}, f)),
                "a load of 'a' is int32, the buffer float32");
  ExpectRefused(Seq(Loop(StoreB(i_)), StoreB(i_)), "variable 'i' is used outside its loop");
  ExpectRefused(StoreB(pool().Var(9)), "variable 9 does not exist");
  ExpectRefused(Loop(StoreB(pool().Var(0, kInt32))), "variable 'i' is used as int32");
}

TEST_F(VerifyTest, AllocsAndIfs) {
  ExpectRefused(Alloc(Loop(StoreB(i_)), 0), "input buffer 'a' is allocated");
  ExpectRefused(Alloc(Loop(StoreB(i_)), 9), "an alloc of buffer 9");
  ExpectRefused(Alloc(Alloc(Loop(StoreB(i_)))), "buffer 't' is allocated twice");
  ExpectRefused(MakeIf(pool(), zero_, Loop(StoreB(i_))), "the condition of an if is int64");
  ExpectRefused(MakeIf(pool(), pool().Lt(i_, pool().Int(3)), Loop(StoreB(i_))),
                "variable 'i' is used outside its loop");
}

TEST_F(VerifyTest, StatementsOfWrongForm) {
  for (StmtKind kind : {StmtKind::kFor, StmtKind::kAlloc, StmtKind::kIf, StmtKind::kStore}) {
    StmtNode node{.kind = kind};
    node.var = 0;
    node.slot = 2;
    node.extent = 4;
    SetBody(&node);
    EXPECT_THAT(Verify(p_), StatusIs(StatusCode::kInternal, HasSubstr("a")))
        << static_cast<int>(kind);
  }
}

TEST_F(VerifyTest, MakersFlattenAndFold) {
  const Stmt a = StoreB(zero_), b = StoreB(zero_);
  const Stmt one[] = {a};
  EXPECT_EQ(MakeSeq(pool(), one), a);
  EXPECT_EQ(Seq(Seq(a, b), Seq(a, b))->num_children, 4u);
  EXPECT_EQ(MakeIf(pool(), pool().Bool(true), a), a);
  EXPECT_EQ(p_.num_args(), 2);
  EXPECT_EQ(p_.buffers[0].bytes(), 16);
}

TEST_F(VerifyTest, EqualLooksAtEverythingButNumbers) {
  Program other = p_;
  EXPECT_TRUE(Equal(p_, other));
  // The same program with i as variable 1 and t as buffer 3, in a pool of its own.
  other.pool = std::make_shared<ExprPool>();
  other.vars = {{"j", 2}, {"i", 4}};
  std::swap(other.buffers[2], other.buffers[3]);
  ExprPool& pool = *other.pool;
  const Expr i[] = {pool.Var(1)}, zero[] = {pool.Int(0)};
  const Stmt stores[] = {MakeStore(pool, 3, 0, zero, pool.Load(0, i, kFloat32)),
                         MakeStore(pool, 1, 0, i, pool.Load(3, zero, kFloat32))};
  other.kernels[0].body =
      MakeFor(pool, 1, 4, LoopKind::kSerial, MakeAlloc(pool, 3, MakeSeq(pool, stores)));
  ASSERT_OK(Verify(other));
  EXPECT_TRUE(Equal(p_, other));
  auto differs = [&](auto change) {
    Program changed = other;
    change(changed);
    return !Equal(p_, changed) && !Equal(changed, p_);
  };
  EXPECT_TRUE(differs([](Program& p) { p.vars[1].name = "k"; }));
  EXPECT_TRUE(differs([](Program& p) { p.buffers[0].shape = {5}; }));
  EXPECT_TRUE(differs([](Program& p) { p.buffers[3].scope = Scope::kShared; }));
  for (const HintRow& row : kHints) {
    EXPECT_TRUE(differs([&](Program& p) { p.stages[0].hints[row.hint] += 1; })) << row.word;
    EXPECT_TRUE(differs([&](Program& p) { p.kernels[0].hints[row.hint] += 1; })) << row.word;
  }
  EXPECT_TRUE(differs([](Program& p) { p.kernels[0].block = {2, 1, 1}; }));
  EXPECT_TRUE(differs([](Program& p) { p.kernels[0].body = p.kernels[0].body->body(); }));
  EXPECT_TRUE(differs([&](Program& p) {
    p.kernels[0].body = MakeFor(pool, 1, 4, LoopKind::kUnrolled, p.kernels[0].body->body());
  }));
  EXPECT_TRUE(differs([&](Program& p) {
    const Stmt reversed[] = {stores[1], stores[0]};
    p.kernels[0].body =
        MakeFor(pool, 1, 4, LoopKind::kSerial, MakeAlloc(pool, 3, MakeSeq(pool, reversed)));
  }));
}

}  // namespace
}  // namespace kiln::ir
