#include "compiler/ir/text.h"

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/ir/random_expr_testing.h"
#include "compiler/ir/traverse.h"

namespace kiln::ir {
namespace {
using testing::HasSubstr;

const std::vector<RandomSlot>& Slots() {
  static const auto* slots = new std::vector<RandomSlot>{
      {kFloat32, 2}, {kInt32, 1}, {kFloat16, 1},    {kBool, 1},      {kBFloat16, 0},
      {kFloat64, 3}, {kInt64, 1}, {kFloat8E4M3, 1}, {kFloat8E5M2, 2}};
  return *slots;
}

// The variables 0, 1, 2 are i, j, `odd name`. The slots above are b0, b1, ...
class TextTest : public testing::Test {
 protected:
  TextTest() {
    names_.var = [](int32_t id) { return std::vector<std::string>{"i", "j", "odd name"}[id]; };
    names_.slot = [](int32_t slot) { return fmt::format("b{}", slot); };
    scope_.var = [this](std::string_view name) -> Expr {
      if (name == "i") return pool_.Var(0);
      if (name == "j") return pool_.Var(1);
      if (name == "odd name") return pool_.Var(2);
      if (name == "n") return pool_.Var(3, kInt32);
      return nullptr;
    };
    scope_.slot = [](std::string_view name) -> std::optional<ExprScope::Slot> {
      for (int32_t s = 0; s < std::ssize(Slots()); ++s) {
        if (name == fmt::format("b{}", s))
          return ExprScope::Slot{s, Slots()[s].type, Slots()[s].rank};
      }
      return {};
    };
  }
  StatusOr<Expr> Parse(std::string_view text, std::optional<Type> context = {}) {
    return ParseExprText(text, scope_, pool_, context);
  }
  std::string Reprint(std::string_view text, std::optional<Type> context = {}) {
    auto e = Parse(text, context);
    return e.ok() ? ExprText(*e, names_, context) : std::string(Message(e.status()));
  }

  ExprPool pool_;
  ExprNames names_;
  ExprScope scope_;
};

TEST_F(TextTest, OperatorsOnBitsBindAsInC) {
  EXPECT_EQ(Reprint("b1[0] & 1 << 2 | b1[1] ^ 3"), "(b1[0] & 4) | (b1[1] ^ 3)");
  EXPECT_EQ(Reprint("b1[0] + 1 << 2 & 3"), "((b1[0] + 1) << 2) & 3");
  EXPECT_EQ(Reprint("~b1[0] & -b1[1]"), "~b1[0] & (0 - b1[1])");
  EXPECT_EQ(Reprint("~5"), "-6");
  EXPECT_THAT(Reprint("b1[0] & 1 == 0"), HasSubstr("'&' of int32 and bool"));
  EXPECT_THAT(Reprint("b0[i, j] & b0[i, i]"), HasSubstr("'&' is for integers, found float32"));
  EXPECT_THAT(Reprint("b3[0] << b3[0]"), HasSubstr("'<<' is for integers, found bool"));
  EXPECT_THAT(Reprint("~b3[0]"), HasSubstr("use '!'"));
}

TEST_F(TextTest, QuestionMarkIsIf) {
  EXPECT_EQ(Reprint("i < 3 ? i : j"), "if(i < 3, i, j)");
  EXPECT_EQ(Reprint("i < 3 ? i < 2 ? 1 : 2 : j + 1"), "if(i < 3, if(i < 2, 1, 2), j + 1)");
  EXPECT_EQ(Reprint("(i < 3 ? 1.0 : 2.0) + b0[i, i < j ? i : j]"),
            "if(i < 3, 1.0, 2.0) + b0[i, if(i < j, i, j)]");
  EXPECT_THAT(Reprint("i ? 1 : 2"), HasSubstr("needs a bool"));
  EXPECT_THAT(Reprint("i < 1 ? 1"), HasSubstr("expected ':'"));
}

TEST_F(TextTest, UnsignedLiterals) {
  EXPECT_EQ(Reprint("uint8(255)"), "uint8(255)");
  EXPECT_EQ(Reprint("uint32(4294967295)"), "uint32(4294967295)");
  EXPECT_EQ(Reprint("uint64(18446744073709551615)"), "uint64(18446744073709551615)");
  EXPECT_THAT(Reprint("uint64(18446744073709551616)"), HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(Reprint("uint64(-1)"), HasSubstr("does not fit uint64"));
  EXPECT_THAT(Reprint("i + 9223372036854775808"), HasSubstr("does not fit int64"));
  EXPECT_EQ(Reprint("i - (-9223372036854775808)"), "i - -9223372036854775808");
  EXPECT_THAT(Reprint("-9223372036854775809"), HasSubstr("does not fit int64"));
  EXPECT_THAT(Reprint("uint8(256)"), HasSubstr("does not fit uint8"));
  EXPECT_THAT(Reprint("uint16(-1)"), HasSubstr("does not fit uint16"));
}

TEST_F(TextTest, BitsOfOtherTypes) {
  EXPECT_EQ(Reprint("float64.bits(i)"), "float64.bits(i)");
  EXPECT_EQ(Reprint("int32.bits(b0[i, j]) + 1"), "int32.bits(b0[i, j]) + 1");
  EXPECT_THAT(Reprint("int16.bits(b0[i, j])"), HasSubstr("int16.bits needs as many bits"));
  EXPECT_THAT(Reprint("bool.bits(i)"), HasSubstr("needs as many bits"));
  EXPECT_THAT(Reprint("int32.bits(i, j)"), HasSubstr("takes 1 argument"));
  EXPECT_THAT(Reprint("int33.bits(i)"), HasSubstr("unknown function 'int33.bits'"));
}

TEST_F(TextTest, PrintsWithFewParentheses) {
  for (std::string_view text : {"b1[i] & 7",
                                "(b1[i] | b1[j]) ^ ~b1[0]",
                                "b1[i] << (b1[j] % 32)",
                                "(b1[i] >> 3) + 1",
                                "(b1[i] & 1) == 0",
                                "b3[i] & b3[j] || !b3[0]",
                                "~(b1[i] + 1)",
                                "i + j*4",
                                "(i + j)*4",
                                "i - (j - 1)",
                                "i - j - 1",
                                "i + (j + 1)",
                                "((i*4) // 3) % 2",
                                "(i // 2)*16",
                                "(i*j) % 4",
                                "i // 4 // 3",
                                "i % 4 + (i // 4)*2",
                                "b0[i, j]*b0[j, i] / b0[i, i]",
                                "i*(4 // j)",
                                "i // 4",
                                "i % 4",
                                "b0[i, j] / b0[j, i]",
                                "min(i, j)",
                                "max(i, 3)",
                                "i < j && !(j < 3 || i == j)",
                                "i < j || j < i && i != j",
                                "(i < j) == (j < i)",
                                "select(i < j, b0[i, j], 0.0)",
                                "if(i >= 2, b0[i - 2, j], -inf)",
                                "float16(b0[i, j + 1])",
                                "exp(b0[i, j])",
                                "b4[]",
                                "pow(b0[i, 0], 2.0)",
                                "i + -5",
                                "`odd name` + 1",
                                "!(i < j)",
                                "int64(b1[i]) + i",
                                "b1[i] + 3",
                                "float16(0.1)",
                                "b2[i] + 0.1",
                                "0.1 + b2[i]",
                                "int32(3)",
                                "int32(2.5)",
                                "int32(float16(2.5))",
                                "float32(b1[i])*1e-05",
                                "0.5 + 1.5",
                                "float64(0.5) + 1.5",
                                "-9223372036854775808",
                                "b6[b1[3]]",
                                "b6[int32(3)]",
                                "abs(i - 1)",
                                "nan",
                                "-0.0",
                                "true",
                                "float64(0.1) < 0.2",
                                "bool(b0[0, 0])"}) {
    EXPECT_EQ(Reprint(text), text);
  }
}

TEST_F(TextTest, ReadsWhatPeopleWrite) {
  EXPECT_EQ(Reprint("  i+j *4 # the sum\n"), "i + j*4");
  EXPECT_EQ(Reprint("((i))"), "i");
  EXPECT_EQ(Reprint("-i"), "0 - i");
  EXPECT_EQ(Reprint("i - -3"), "i - -3");
  EXPECT_EQ(Reprint("b0[i, j] + 1"), "b0[i, j] + 1.0");
  EXPECT_EQ(Reprint("2*3 + i*1"), "6 + i");
  EXPECT_EQ(Reprint("1 / 2"), "1.0 / 2.0");
  EXPECT_EQ(Reprint("float32(16777217)"), "16777216.0");
  EXPECT_EQ(Reprint("1", kFloat16), "1.0");
  EXPECT_EQ(Reprint("0.1", kFloat64), "0.1");
  EXPECT_EQ(Reprint("1.5e3"), "1500.0");
  EXPECT_EQ(Reprint("(i < j) && true"), "i < j");
  EXPECT_EQ(Reprint("`\\x69`"), "i");
}

TEST_F(TextTest, ErrorsNameThePlaceAndWhatIsMissing) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"", "line 1, column 1: expected an expression, found the end"},
      {"i +", "line 1, column 4: expected an expression, found the end"},
      {"\n\n  b0[i, j + 1; 3]", "line 3, column 14: expected ']' after the index list, found ';'"},
      {"b0[i]", "line 1, column 1: 'b0' has 2 dimensions, found 1 indices"},
      {"b9[i]", "line 1, column 1: unknown tensor 'b9'"},
      {"b0 + 1.0", "line 1, column 1: 'b0' is a tensor: write its indices in []"},
      {"k + 1", "line 1, column 1: unknown variable 'k'"},
      {"gelu(i)", "line 1, column 1: unknown function 'gelu'"},
      {"exp(i)", "line 1, column 1: 'exp' is for floats, found int64: cast it, as in float32(x)"},
      {"i / 2", "line 1, column 3: '/' is for floats, found int64: use '//'"},
      {"i + b0[i, j]", "line 1, column 3: '+' of int64 and float32: cast one, as in int64(x)"},
      {"i + 0.5", "line 1, column 5: expected int64, found 0.5"},
      {"i < j < 3", "line 1, column 7: comparisons do not chain"},
      {"i && j", "line 1, column 1: '&&' needs a bool, found int64"},
      {"select(1, i, j)", "line 1, column 8: the condition needs a bool, found a number"},
      {"min(i)", "line 1, column 1: min takes 2 arguments, found 1"},
      {"exp(1.0, 2.0)", "line 1, column 1: exp takes 1 argument, found 2"},
      {"(i", "line 1, column 3: expected ')' after the expression, found the end"},
      {"i j", "line 1, column 3: expected the end, found 'j'"},
      {"int8(300)", "line 1, column 6: 300 does not fit int8"},
      {"99999999999999999999", "line 1, column 1: 99999999999999999999 does not fit 64 bits"},
      {"9223372036854775808", "line 1, column 1: 9223372036854775808 does not fit int64"},
      {"1e400", "line 1, column 1: 1e400 does not fit float64"},
      {"1e300", "line 1, column 1: 1e300 does not fit float32"},
      {"float16(-70000)", "line 1, column 10: -70000 does not fit float16"},
      {"b0[0.5, i]", "line 1, column 4: expected int64, found 0.5"},
      {"b0[b0[i, j], i]", "line 1, column 4: an index of type float32, expected an int"},
      {"3x", "line 1, column 1: a number ends in 'x'"},
      {"i + \x01", "line 1, column 5: unexpected byte 0x01"},
      {"`abc", "line 1, column 1: this quoted name does not end on its line"},
      {"`\\q`", "line 1, column 1: unknown escape"},
  };
  for (const auto& [text, message] : kCases) {
    EXPECT_THAT(Parse(text), StatusIs(StatusCode::kInvalidArgument, HasSubstr(message))) << text;
  }
  EXPECT_THAT(Parse("i", kFloat32),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected float32, found an")));
}

TEST_F(TextTest, DeepTextIsRefused) {
  const std::string deep(100000, '(');
  for (const std::string& text : {deep, deep + "i" + std::string(100000, ')'),
                                  std::string(100000, '!'), std::string(100000, '-'),
                                  [] {
                                    std::string chain = "i";
                                    for (int k = 0; k < 100000; ++k) chain += " + j";
                                    return chain;
                                  }(),
                                  [] {
                                    std::string calls;
                                    for (int k = 0; k < 100000; ++k) calls += "float16(";
                                    return calls;
                                  }()}) {
    EXPECT_THAT(Parse(text), StatusIs(StatusCode::kInvalidArgument, HasSubstr("nests deeper")));
  }
}

TEST_F(TextTest, RandomExpressionsReadBack) {
  for (uint64_t seed = 0; seed < 30000; ++seed) {
    Rng rng(seed);
    RandomExprs make(pool_, rng, 3, Slots());
    const Type type = make.AnyType();
    const Expr e = make.Make(type, static_cast<int>(1 + seed % 6));
    for (std::optional<Type> context : {std::optional<Type>(), std::optional<Type>(type)}) {
      const std::string text = ExprText(e, names_, context);
      const StatusOr<Expr> parsed = Parse(text, context);
      ASSERT_TRUE(parsed.ok()) << "seed " << seed << "\n" << text << "\n" << parsed.status();
      ASSERT_EQ(*parsed, e) << "seed " << seed << "\n"
                            << text << "\n"
                            << ExprText(*parsed, names_, context);
    }
  }
}

// Any bytes give an error or an expression that reads back.
TEST_F(TextTest, MutatedTextNeverCrashes) {
  static constexpr std::string_view kPieces[] = {"(",   ")",
                                                 "[",   "]",
                                                 ",",   "-",
                                                 "!",   "&&",
                                                 "//",  "i",
                                                 "b0[", "1",
                                                 "0.5", "float16(",
                                                 "inf", "select(",
                                                 "`",   "\n",
                                                 "#",   "e",
                                                 ".",   "\xff",
                                                 "<",   "true",
                                                 "%",   std::string_view("\0", 1)};
  int parsed_count = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    Rng rng(seed);
    RandomExprs make(pool_, rng, 3, Slots());
    std::string text = ExprText(make.Make(make.AnyType(), 4), names_);
    for (int64_t n = UniformIn(rng, 1, 3); n > 0; --n) {
      const auto at = static_cast<size_t>(UniformInt(rng, std::ssize(text) + 1));
      switch (UniformInt(rng, 3)) {
        case 0:
          text.insert(at, kPieces[UniformInt(rng, std::ssize(kPieces))]);
          break;
        case 1:
          text.erase(at, static_cast<size_t>(UniformInt(rng, 4)));
          break;
        default:
          if (at < text.size()) text[at] = static_cast<char>(rng());
      }
    }
    const StatusOr<Expr> e = Parse(text);
    if (!e.ok()) continue;
    ++parsed_count;
    if (UsesVar(*e, 3)) continue;
    ASSERT_OK_AND_ASSIGN(const Expr again, Parse(ExprText(*e, names_)));
    ASSERT_EQ(again, *e) << "seed " << seed << "\n" << text;
  }
  EXPECT_GT(parsed_count, 100);
}

TEST(FloatTextTest, ShortAndExact) {
  EXPECT_EQ(FloatText(0.5, kFloat32), "0.5");
  EXPECT_EQ(FloatText(static_cast<double>(0.1f), kFloat32), "0.1");
  EXPECT_EQ(FloatText(0.0999755859375, kFloat16), "0.1");
  EXPECT_EQ(FloatText(0.1, kFloat64), "0.1");
  EXPECT_EQ(FloatText(1e-5, kFloat64), "1e-05");
  EXPECT_EQ(FloatText(-2, kFloat32), "-2.0");
  EXPECT_EQ(FloatText(65504, kFloat16), "65504.0");
}

TEST(LexerTest, NamesAreQuotedWhereNeeded) {
  EXPECT_EQ(NameText("i.0@j.0@"), "i.0@j.0@");
  EXPECT_EQ(NameText("T_add'1"), "T_add'1");
  EXPECT_EQ(NameText("a b"), "`a b`");
  EXPECT_EQ(NameText("exp"), "`exp`");
  EXPECT_EQ(NameText("float32"), "`float32`");
  EXPECT_EQ(NameText(""), "``");
  EXPECT_EQ(NameText("a."), "`a.`");
  EXPECT_EQ(NameText("`\\\n"), "`\\`\\\\\\x0a`");
  Rng rng(1);
  for (int n = 0; n < 2000; ++n) {
    std::string name;
    for (int64_t k = UniformInt(rng, 6); k > 0; --k) name += static_cast<char>(rng());
    const std::string text = NameText(name);
    ASSERT_OK_AND_ASSIGN(TokenStream tokens, TokenStream::Tokenize(text));
    ASSERT_OK_AND_ASSIGN(const std::string back, tokens.ExpectName("a name"));
    EXPECT_EQ(back, name);
    EXPECT_OK(tokens.ExpectEnd());
  }
}

TEST(LexerTest, TokensAndPlaces) {
  ASSERT_OK_AND_ASSIGN(TokenStream tokens, TokenStream::Tokenize("a 0..64 # x\n  -> 1.5"));
  EXPECT_EQ(tokens.Next().text, "a");
  EXPECT_EQ(tokens.Next().text, "0");
  EXPECT_TRUE(tokens.TakeSymbol(".."));
  EXPECT_EQ(tokens.Next().kind, TokenKind::kInt);
  EXPECT_EQ(tokens.Peek().line, 2);
  EXPECT_EQ(tokens.Peek().column, 3);
  EXPECT_TRUE(tokens.TakeSymbol("->"));
  EXPECT_EQ(tokens.Next().kind, TokenKind::kFloat);
  EXPECT_TRUE(tokens.AtEnd());
  EXPECT_EQ(tokens.Next().kind, TokenKind::kEnd);
}

TEST(LexerTest, IntsAreChecked) {
  ASSERT_OK_AND_ASSIGN(TokenStream large, TokenStream::Tokenize("-18446744073709551615"));
  EXPECT_THAT(large.ExpectInt("an axis", INT64_MIN, INT64_MAX),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("found -18446744073709551615")));
  ASSERT_OK_AND_ASSIGN(TokenStream tokens, TokenStream::Tokenize("-3 70 x"));
  ASSERT_OK_AND_ASSIGN(const int64_t value, tokens.ExpectInt("an axis", -5, 5));
  EXPECT_EQ(value, -3);
  EXPECT_THAT(tokens.ExpectInt("an axis", 0, 5),
              StatusIs(StatusCode::kInvalidArgument,
                       "line 1, column 4: expected an axis from 0 to 5, found 70"));
  tokens.Next();
  EXPECT_THAT(
      tokens.ExpectInt("an axis", 0, 5),
      StatusIs(StatusCode::kInvalidArgument, "line 1, column 7: expected an axis, found 'x'"));
}

}  // namespace
}  // namespace kiln::ir
