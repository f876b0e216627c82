#include "compiler/instructions/instruction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/status_testing.h"
#include "compiler/instructions/match.h"
#include "compiler/ir/program_text.h"

namespace kiln::instructions {
namespace {
using testing::HasSubstr;

TEST(Instructions, RowsAreWhole) {
  std::set<std::string_view> names;
  ASSERT_EQ(InstructionBodies().size(), Instructions().size());
  for (const InstructionBody& body : InstructionBodies()) {
    EXPECT_TRUE(names.insert(body.row->name).second) << body.row->name;
    EXPECT_EQ(FindInstruction(body.row->name), &body);
    EXPECT_EQ(ir::ProgramText(body.program), ir::ProgramText(*ir::ParseProgram(body.row->body)));
    // The order of the additions changes nothing.
    EXPECT_TRUE(body.store->value()->type.is_int()) << body.row->name;
    for (const ir::Buffer& operand : body.program.buffers)
      EXPECT_THAT(body.row->text, HasSubstr("$" + operand.name)) << body.row->name;
  }
  EXPECT_EQ(FindInstruction("dp5a"), nullptr);
}

// A program with this store in a loop over k and one over j. The second index of a leads to words.
class MatchTest : public testing::Test {
 protected:
  std::optional<Operands> Match(std::string_view store) {
    StatusOr<ir::Program> program = ir::ParseProgram(fmt::format(
        "program(x: input int8[8, 16], y: input int8[16], u: input uint8[16], w: input int32[16], "
        "z: output int32[8]) {{ stage s kernel k {{ for j in 0..8 {{ for k in 0..16 {{ {} @ s }} "
        "}} }} }}",
        store));
    KILN_CHECK(program.ok(), "{}", Message(program.status()));
    program_ = *std::move(program);
    return MatchStore(*FindInstruction("dp4a"), program_.kernels[0].body->body()->body());
  }
  std::string NameOf(ir::Expr load) const {
    return load == nullptr ? "" : program_.buffers[static_cast<size_t>(load->id)].name;
  }

  ir::Program program_;
};

TEST_F(MatchTest, SumsAndProductsAreOfEitherOrder) {
  for (const std::string_view store :
       {"z[j] = z[j] + int32(x[j, k])*int32(y[k])", "z[j] = int32(x[j, k])*int32(y[k]) + z[j]"}) {
    const std::optional<Operands> operands = Match(store);
    ASSERT_TRUE(operands) << store;
    EXPECT_EQ(NameOf(operands->loads[0]), "x");
    EXPECT_EQ(NameOf(operands->loads[1]), "y");
    EXPECT_EQ(operands->loads[2], nullptr);
  }
}

TEST_F(MatchTest, OtherStoresDoNotFit) {
  for (const std::string_view store :
       {"z[j] = int32(x[j, k])*int32(y[k])", "z[j] = z[7 - j] + int32(x[j, k])*int32(y[k])",
        "z[j] = z[j] - int32(x[j, k])*int32(y[k])", "z[j] = z[j] + int32(x[j, k])*w[k]",
        "z[j] = z[j] + int32(x[j, k])*int32(u[k])", "z[j] = z[j] + int32(x[j, k])*3",
        "z[j] = z[j] + int32(x[j, k])*int32(y[k]) + 1"}) {
    EXPECT_FALSE(Match(store)) << store;
  }
}

TEST_F(MatchTest, FactorsAreVectorsAndTheSumIsNone) {
  const InstructionBody& body = *FindInstruction("dp4a");
  EXPECT_TRUE(IsVector(body, 0));
  EXPECT_TRUE(IsVector(body, 1));
  EXPECT_FALSE(IsVector(body, 2));
}

}  // namespace
}  // namespace kiln::instructions
