#include "compiler/formula/expression.h"

#include <map>

#include "base/status_testing.h"

namespace kiln::formula {
namespace {

using testing::HasSubstr;

StatusOr<int64_t> ValueOf(std::string_view text, const std::map<std::string, int64_t>& names = {}) {
  KILN_ASSIGN_OR_RETURN(const Expression expression, ParseExpression(text));
  // An expression that was read is printed as a text with the same meaning.
  KILN_ASSIGN_OR_RETURN(const Expression again, ParseExpression(PrintExpression(expression)));
  EXPECT_EQ(again, expression) << text << " as " << PrintExpression(expression);
  return Evaluate(expression, [&](const Expression& leaf) -> StatusOr<int64_t> {
    const auto found = names.find(leaf.text);
    if (leaf.is_name() && found != names.end()) return found->second;
    return InvalidArgument("unknown name {}", leaf.text);
  });
}

MATCHER_P(Gives, value, "") {
  if (arg.ok()) return *arg == value;
  *result_listener << Message(arg.status());
  return false;
}

TEST(Expression, ComputesWithWholeNumbers) {
  EXPECT_THAT(ValueOf("2 + 3 * 4"), Gives(14));
  EXPECT_THAT(ValueOf("(2 + 3) * 4"), Gives(20));
  EXPECT_THAT(ValueOf("-7 // 2"), Gives(-4));
  EXPECT_THAT(ValueOf("-7 % 4"), Gives(1));
  EXPECT_THAT(ValueOf("--0 * 3 - --2"), Gives(-2));
  EXPECT_THAT(ValueOf("ceil_div(n, 16) * min(x, 3, 5)", {{"n", 33}, {"x", 4}}), Gives(9));
  EXPECT_THAT(ValueOf("!(x == 1) || x > 0", {{"x", 1}}), Gives(1));
}

TEST(Expression, UnderstandsTheRestrictionsOfPython) {
  EXPECT_THAT(ValueOf("32 <= x * y <= 1024", {{"x", 8}, {"y", 4}}), Gives(1));
  EXPECT_THAT(ValueOf("32 <= x * y <= 1024", {{"x", 64}, {"y", 64}}), Gives(0));
  EXPECT_THAT(ValueOf("1 < 3 < 2"), Gives(0));
  EXPECT_THAT(ValueOf("(1 < 3) < 2"), Gives(1));
  EXPECT_THAT(ValueOf("x == 1 or y == 1 and not x == 1", {{"x", 2}, {"y", 1}}), Gives(1));
  EXPECT_THAT(ValueOf("not x == 2", {{"x", 2}}), Gives(0));
}

std::string Repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// The printed text has other brackets, and never nests deeper than a text that may be read.
TEST(Expression, TheDeepestReadsBack) {
  for (const char* open : {"not ", "!", "-", "not x == ", "not - ", "! not "}) {
    SCOPED_TRACE(open);
    for (const int times : {20, 49, 50, 99, 100, 101}) {
      for (const int brackets : {0, 1, 50, 100}) {
        const std::string text =
            Repeated(open, times) + Repeated("(x - ", brackets) + "x" + Repeated(")", brackets);
        const StatusOr<Expression> expression = ParseExpression(text);
        if (expression.ok()) {
          EXPECT_OK(ValueOf(text, {{"x", 1}}));
        } else {
          EXPECT_THAT(Message(expression.status()), HasSubstr("at most 100 deep"));
        }
        if (times < 50 && brackets <= 50) {
          EXPECT_OK(expression);
        }
      }
    }
  }
}

TEST(Expression, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(Message(ParseExpression("x / 2").status()),
              HasSubstr("line 1, column 3: expected // or ceil_div"));
  EXPECT_THAT(Message(ParseExpression("x +").status()), HasSubstr("expected a number or a name"));
  EXPECT_THAT(Message(ValueOf("1 // x", {{"x", 0}}).status()), HasSubstr("1 // 0"));
  EXPECT_THAT(Message(ValueOf("y").status()), HasSubstr("line 1, column 1: unknown name y"));
  EXPECT_FALSE(ParseExpression(std::string(1000, '(')).ok());
  // Each level of such a chain would double the size of its operand.
  std::string chains = "1";
  for (int i = 0; i < 40; ++i) chains = "0 < (" + chains + ") < 2";
  EXPECT_FALSE(ParseExpression(chains).ok());
}

}  // namespace
}  // namespace kiln::formula
