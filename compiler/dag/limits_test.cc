#include "compiler/dag/limits.h"

#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/body_size.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"

namespace kiln::dag {
namespace {

using testing::AllOf;
using testing::HasSubstr;

testing::Matcher<StatusOr<DagPtr>> IsRefused(std::string_view found, std::string_view allowed) {
  return StatusIs(StatusCode::kInvalidArgument,
                  AllOf(HasSubstr(std::string(found)), HasSubstr(std::string(allowed))));
}

std::string Repeated(std::string_view text, int count, std::string_view separator = "") {
  std::string result;
  for (int i = 0; i < count; ++i) result += fmt::format("{}{}", i > 0 ? separator : "", text);
  return result;
}

std::string WithAxes(int count) {
  std::string axes;
  for (int i = 0; i < count; ++i) axes += fmt::format("{}a{}: 1", i > 0 ? ", " : "", i);
  return fmt::format("input A: float32[1]\nB[{}] = A[0] + 1.0\n", axes);
}

// Makes a text of operators like X1[i] = X0[i] + 1.0.
std::string Chain(int operators) {
  std::string text = "input X0: float32[8]\n";
  for (int k = 1; k <= operators; ++k) text += fmt::format("X{}[i: 8] = X{}[i] + 1.0\n", k, k - 1);
  return text;
}

TEST(Limits, Axes) {
  EXPECT_OK(ParseDag(WithAxes(kMaxAxes)));
  EXPECT_THAT(ParseDag(WithAxes(kMaxAxes + 1)), IsRefused("B has 33 axes", "at most 32"));
  EXPECT_THAT(ParseDag(WithAxes(100'000)), IsRefused("B has 100000 axes", "at most 32"));
  const std::string shape = Repeated("1", 33, ", ");
  EXPECT_THAT(ParseDag(fmt::format("input A: float32[{}]\nB[] = 1.0", shape)),
              IsRefused("A has 33 axes", "at most 32"));
}

TEST(Limits, Operators) {
  EXPECT_THAT(ParseDag(Chain(kMaxOperators)), IsRefused("more than 65536 operators", "cut it"));
}

TEST(Limits, Bytes) {
  EXPECT_THAT(ParseDag(std::string(kMaxTextBytes + 1, ' ')),
              IsRefused("has 8388609 bytes", "at most 8388608"));
  EXPECT_THAT(ParseDag(fmt::format("input {}: float32[1]", std::string(300, 'a'))),
              IsRefused("aaaaaaaaaaaaaaaaaaaaaaaa..., has 300 bytes", "at most 256"));
  EXPECT_THAT(ParseDag(std::string(5000, 'a')),
              IsRefused("a name or number of 5000 bytes", "at most 4096"));
}

TEST(Limits, Bodies) {
  const std::string row = Repeated("A[0]", 200, " + ");
  const std::string rows = Repeated(fmt::format("({})", row), 200, " + ");
  EXPECT_THAT(ParseDag(fmt::format("input A: float32[1]\nB[] = {}", rows)),
              IsRefused("B: its body has 119999 operands and operations", "at most 65536"));
}

// Each condition is asked for twice by the expression around it.
TEST(Limits, ConditionsInConditions) {
  std::string index = "i";
  for (int k = 0; k < 60; ++k) index = fmt::format("if({} < 4, i, 7 - i)", index);
  EXPECT_THAT(ParseDag(fmt::format("input A: float32[8]\nB[i: 8] = A[{}]", index)),
              IsRefused("too entangled to be checked", "operators of their own"));
}

TEST(Limits, LongChainsTakeTimeInProportion) {
  constexpr int kLength = 32'000;
  const std::string text = Chain(kLength);
  ASSERT_OK_AND_ASSIGN(const DagPtr dag, ParseDag(text));
  EXPECT_EQ(dag->size(), kLength + 1);
  EXPECT_EQ(PrintDag(*dag), text);
  EXPECT_THAT(WorkloadKey(*dag), HasSubstr("[8], [8]"));
  // All operators have the same name.
  std::vector<OpNode> nodes = dag->nodes();
  for (OpNode& node : nodes) node.op = node.op->Renamed("X");
  ASSERT_OK_AND_ASSIGN(const DagPtr same, Dag::Make(std::move(nodes)));
  EXPECT_THAT(PrintDag(*same), HasSubstr("X'32000[i: 8] = X'31999[i] + 1.0"));
}

TEST(Limits, AttributesNameWhatIsThere) {
  const auto with = [](std::string_view attribute) {
    return ParseDag(
        fmt::format("input A: float32[8, 4]\n@{}\nB[i: 8] = sum(k: 4) A[i, k]", attribute));
  };
  EXPECT_OK(with("no_split_at_inner(i, k)"));
  EXPECT_OK(with("layout_free_placeholders(A)"));
  EXPECT_THAT(with("no_split_at_inner(nonsense)"),
              IsRefused("attribute no_split_at_inner names nonsense", "no axis of the operator"));
  EXPECT_THAT(with("layout_free_placeholders(i)"),
              IsRefused("layout_free_placeholders names i", "no input of the operator"));
}

TEST(Limits, AByteOrderMarkIsSkipped) {
  const std::string text = "input A: float32[2]\nB[i: 2] = A[i] + 1.0";
  ASSERT_OK_AND_ASSIGN(const DagPtr plain, ParseDag(text));
  ASSERT_OK_AND_ASSIGN(const DagPtr marked, ParseDag("\xef\xbb\xbf" + text));
  EXPECT_EQ(PrintDag(*marked), PrintDag(*plain));
}

TEST(BodySize, CountsTrees) {
  ASSERT_OK_AND_ASSIGN(const DagPtr dag, ParseDag(R"(
      input A: float32[8, 8]
      B[i: 8, j: 8] = A[(i*j) % 8, 3] * A[(i*j) % 8, 3] + A[j, i])"));
  const BodySize size = SizeOf(dag->op(1).bodies());
  EXPECT_EQ(size.tree.nodes, 2 * 5 + 1 + 1 + 1) << "twice a load, %, *, 8, 3; a load; * and +";
  EXPECT_EQ(size.tree.vars, 2 * 2 + 2);
  EXPECT_EQ(size.height, 6);
  ASSERT_EQ(size.reads.size(), 2u);
  EXPECT_EQ(size.reads[0].count, 2);
  EXPECT_EQ(size.reads[0].index.nodes, 3);
  EXPECT_EQ(size.reads[0].index.vars, 2);
  EXPECT_EQ(size.reads[1].count, 1);
  EXPECT_EQ(size.reads[1].index.With(5), 5);
}

}  // namespace
}  // namespace kiln::dag
