#include "compiler/ir/rewrite.h"

#include "base/status_testing.h"
#include "compiler/ir/program_text.h"
#include "compiler/ir/substitution.h"

namespace kiln::ir {
namespace {

constexpr std::string_view kHead = R"(program(
  A: input float32[4, 8],
  B: output float32[4, 8],
) {
stage s
kernel k {
)";

constexpr std::string_view kBody = R"(
for i in 0..4 {
  alloc t: local float32[8]
  for j in 0..8 { t[j] = A[i, j] @ s }
  if i < 3 {
    for l in 0..8 { B[i, l] = t[l] + A[i, 0] @ s }
  }
}
)";

Program Parse(std::string_view body) {
  StatusOr<Program> program = ParseProgram(fmt::format("{}{}}}\n}}\n", kHead, body));
  KILN_CHECK(program.ok(), "{}\n{}", Message(program.status()), body);
  return *std::move(program);
}

int32_t VarOf(const Program& program, std::string_view name) {
  for (size_t v = 0; v < program.vars.size(); ++v) {
    if (program.vars[v].name == name) return static_cast<int32_t>(v);
  }
  return -1;
}

class RewriteTest : public testing::Test {
 protected:
  Stmt body() const { return p_.kernels[0].body; }
  ExprPool& pool() { return *p_.pool; }
  std::vector<Expr> Place() { return {pool().Var(i_), pool().Var(j_)}; }
  Expr A() { return pool().Load(0, Place(), kFloat32); }
  void ExpectBody(std::string_view expected) {
    EXPECT_OK(Verify(p_));
    EXPECT_TRUE(Equal(p_, Parse(expected))) << ProgramText(p_);
  }

  Program p_ = Parse(kBody);
  const int32_t i_ = VarOf(p_, "i"), j_ = VarOf(p_, "j"), t_ = 2;
};

TEST_F(RewriteTest, InstructionsKeepTheirNames) {
  const int32_t number = AddInstruction(p_, "copy");
  EXPECT_EQ(AddInstruction(p_, "copy"), number);
  p_.kernels[0].body = MakeInstruction(pool(), number, MakeStore(pool(), 1, 0, Place(), A()));
  Substitution names;
  names.SetVar(i_, pool().Int(2));
  names.SetVar(j_, pool().Int(3));
  p_.kernels[0].body = Substitute(pool(), body(), names);
  ExpectBody("instruction copy { B[2, 3] = A[2, 3] @ s }");
}

TEST_F(RewriteTest, WhatDoesNotChangeIsTheStatementItself) {
  const Stmt loop = body();
  EXPECT_EQ(WithBody(pool(), loop, loop->body()), loop);
  EXPECT_EQ(WithKind(pool(), loop, LoopKind::kSerial, loop->body()), loop);
  EXPECT_EQ(RewriteChildren(pool(), loop, [](Stmt child) { return child; }), loop);
  EXPECT_EQ(Substitute(pool(), loop, {}), loop);
  // The replaced variable does not occur in the statement.
  EXPECT_EQ(Substitute(pool(), loop, {.vars = {nullptr, nullptr, nullptr, pool().Int(1)}}), loop);
}

TEST_F(RewriteTest, ChildrenAreVisitedInOrder) {
  std::vector<StmtKind> kinds;
  const auto visit = [&](auto& self, Stmt s) -> Stmt {
    kinds.push_back(s->kind);
    return RewriteChildren(pool(), s, [&](Stmt child) { return self(self, child); });
  };
  EXPECT_EQ(visit(visit, body()), body());
  EXPECT_THAT(kinds, testing::ElementsAre(StmtKind::kFor, StmtKind::kAlloc, StmtKind::kSeq,
                                          StmtKind::kFor, StmtKind::kStore, StmtKind::kIf,
                                          StmtKind::kFor, StmtKind::kStore));
}

TEST_F(RewriteTest, AChangeReachesTheRoot) {
  const auto unroll = [&](auto& self, Stmt s) -> Stmt {
    const Stmt inner = RewriteChildren(pool(), s, [&](Stmt child) { return self(self, child); });
    return s->kind == StmtKind::kFor && s->var == j_
               ? WithKind(pool(), inner, LoopKind::kUnrolled, inner->body())
               : inner;
  };
  p_.kernels[0].body = unroll(unroll, body());
  ExpectBody(R"(
for i in 0..4 {
  alloc t: local float32[8]
  unroll j in 0..8 { t[j] = A[i, j] @ s }
  if i < 3 {
    for l in 0..8 { B[i, l] = t[l] + A[i, 0] @ s }
  }
})");
}

TEST_F(RewriteTest, SequencesGoWithoutWhatIsEmpty) {
  const auto drop = [&](auto& self, Stmt s) -> Stmt {
    if (s->kind == StmtKind::kFor && s->var == j_) return MakeSeq(pool(), {});
    return RewriteChildren(pool(), s, [&](Stmt child) { return self(self, child); });
  };
  EXPECT_TRUE(IsEmpty(MakeSeq(pool(), {})));
  EXPECT_FALSE(IsEmpty(body()));
  p_.kernels[0].body = drop(drop, body());
  ExpectBody(R"(
for i in 0..4 {
  alloc t: local float32[8]
  if i < 3 {
    for l in 0..8 { B[i, l] = t[l] + A[i, 0] @ s }
  }
})");
}

TEST_F(RewriteTest, SubstituteRenamesWhatIsBoundAndItsUses) {
  Substitution names;
  names.SetVar(i_, pool().Var(AddVar(p_, "i", 4)));
  names.SetSlot(t_, AddBuffer(p_, p_.buffers[static_cast<size_t>(t_)]));
  p_.kernels[0].body = Substitute(pool(), body(), names);
  ExpectBody(R"(
for i_1 in 0..4 {
  alloc t_1: local float32[8]
  for j in 0..8 { t_1[j] = A[i_1, j] @ s }
  if i_1 < 3 {
    for l in 0..8 { B[i_1, l] = t_1[l] + A[i_1, 0] @ s }
  }
})");
}

TEST_F(RewriteTest, SubstituteFoldsConditionsAndPutsIndicesInFront) {
  Substitution names;
  names.SetVar(i_, pool().Int(2));
  names.SetFirstIndex(t_, pool().Int(1));
  p_.buffers[static_cast<size_t>(t_)].shape = {2, 8};
  p_.kernels[0].body = Substitute(pool(), body()->body(), names);
  ExpectBody(R"(
  alloc t: local float32[2, 8]
  for j in 0..8 { t[1, j] = A[2, j] @ s }
  for l in 0..8 { B[2, l] = t[1, l] + A[2, 0] @ s })");
}

TEST_F(RewriteTest, NewNamesAreTheirOwn) {
  EXPECT_EQ(p_.vars[static_cast<size_t>(AddVar(p_, "x", 2))].name, "x");
  EXPECT_EQ(p_.vars[static_cast<size_t>(AddVar(p_, "x", 2))].name, "x_1");
  EXPECT_EQ(p_.vars[static_cast<size_t>(AddVar(p_, "x", 2))].name, "x_2");
  EXPECT_EQ(p_.vars[static_cast<size_t>(AddVar(p_, "x", 2, ""))].name, "x1");
  const int32_t slot = AddBuffer(p_, {"t", kInt32, {3}, Scope::kLocal, 0});
  EXPECT_EQ(p_.buffers[static_cast<size_t>(slot)].name, "t_1");
  EXPECT_EQ(p_.buffers[static_cast<size_t>(slot)].type, kInt32);
}

}  // namespace
}  // namespace kiln::ir
