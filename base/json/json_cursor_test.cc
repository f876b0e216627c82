#include "base/json/json_cursor.h"

#include <random>

#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

StatusOr<std::string> Value(std::string_view text) {
  JsonCursor json(text);
  KILN_ASSIGN_OR_RETURN(std::string value, json.Value("a value"));
  KILN_RETURN_IF_ERROR(json.ExpectEnd());
  return value;
}

StatusOr<std::string> String(std::string_view text) {
  JsonCursor json(text);
  KILN_ASSIGN_OR_RETURN(std::string value, json.String("a string"));
  KILN_RETURN_IF_ERROR(json.ExpectEnd());
  return value;
}

TEST(JsonCursor, ValuesGetOneSpacing) {
  const std::pair<const char*, const char*> cases[] = {
      {"[1,2 , 3]", "[1, 2, 3]"},
      {" [ [ ] , { } ] ", "[[], {}]"},
      {R"({"a":1,"b" :[null,true,false]})", R"({"a": 1, "b": [null, true, false]})"},
      {R"("x,  y: z")", R"("x,  y: z")"},
      {R"(["\u00e9\"\\", -0.5e+10, 1E3])", R"(["\u00e9\"\\", -0.5e+10, 1E3])"},
      {"\t\r\n0 ", "0"},
      {"[[10, -2, 0], [-0], [3, 4.5],[6,  7 ]]", "[[10, -2, 0], [-0], [3, 4.5], [6, 7]]"},
  };
  for (const auto& [text, expected] : cases) {
    ASSERT_OK_AND_ASSIGN(const std::string value, Value(text));
    EXPECT_EQ(value, expected);
    ASSERT_OK_AND_ASSIGN(const std::string again, Value(value));
    EXPECT_EQ(again, value);
  }
}

TEST(JsonCursor, RefusalsNameColumnAndFinding) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "column 1: expected a value, found the end of the line"},
      {"[1 2]", "column 4: expected ',' or ']', found '2]'"},
      {"[10, 01]", "column 7: expected ',' or ']', found '1]'"},
      {"[10, -]", "column 6: expected a value, found '-]'"},
      {"[10, ]", "column 6: expected a value, found ']'"},
      {"[10, 2", "found the end of the line"},
      {"[1,]", "column 4: expected a value, found ']'"},
      {"[1", "found the end of the line"},
      {"{1: 2}", "column 2: expected a key in quotes"},
      {R"({"a" 2})", "column 6: expected ':' (after a key)"},
      {"01", "column 2: expected the end of the line, found '1'"},
      {"1.", "column 1: expected a value"},
      {"-", "column 1: expected a value"},
      {"1e", "column 1: expected a value"},
      {"nan", "column 1: expected a value, found 'nan'"},
      {"truth", "expected a value, found 'truth'"},
      {R"("abc)", "column 5: expected the closing '\"' of a string"},
      {R"("abc\)", "the closing"},
      {"\"a\tb\"", "column 3: expected no control character"},
      {R"(["ab\x"])", "column 5: expected an escape of JSON"},
      {R"(["\u12g4"])", "an escape"},
      {R"(["\ud800"])", "an escape"},
      {R"(["\udc00"])", "an escape"},
      {"[1] x", "column 5: expected the end of the line, found 'x'"},
      {"[1, \x1b]", "column 5: expected a value, found ']'"},
      {"[1, \xff]", "column 5: expected a value, found '?]'"},
      {"é1234567890123456789012345678", "found 'é1234567890123456789012...'"},
      {"12345678901234567890123é", "column 24: expected the end of the line, found 'é'"},
      {"x1234567890123456789012é45", "found 'x1234567890123456789012...'"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(Value(text), StatusIs(StatusCode::kInvalidArgument, HasSubstr(message))) << text;
  }
}

TEST(JsonCursor, NestingIsBounded) {
  const std::string deep(100'000, '[');
  EXPECT_THAT(Value(deep), StatusIs(StatusCode::kInvalidArgument, HasSubstr("at most 32 levels")));
  const auto integer_in = [](size_t levels) {
    return Value(std::string(levels, '[') + "1" + std::string(levels, ']'));
  };
  EXPECT_OK(integer_in(32));
  EXPECT_THAT(integer_in(33),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("at most 32 levels")));
}

TEST(JsonCursor, StringsAreDecoded) {
  ASSERT_OK_AND_ASSIGN(const std::string text,
                       String(R"("a\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00é")"));
  EXPECT_EQ(text, "a\"\\/\b\f\n\r\tA\u00e9\u20ac\U0001F600\u00e9");
}

TEST(JsonCursor, NumbersAreCheckedForRange) {
  auto integer = [](std::string_view text) { return JsonCursor(text).Int("a number"); };
  auto real = [](std::string_view text) { return JsonCursor(text).Double("a number"); };
  EXPECT_EQ(*integer("-9223372036854775808"), INT64_MIN);
  EXPECT_THAT(integer("9223372036854775808"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("an integer of 64 bits")));
  EXPECT_THAT(integer("1.5"), StatusIs(StatusCode::kInvalidArgument, HasSubstr("found '1.5'")));
  EXPECT_EQ(*real("4.47561e-05"), 4.47561e-05);
  EXPECT_EQ(*real("-0"), 0.0);
  EXPECT_THAT(real("1e999"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("within the range of a double")));
}

TEST(JsonCursor, IntegersAreCheckedForTheirInterval) {
  auto integer = [](std::string_view text) { return JsonCursor(text).Int("a stage", -1, 12); };
  EXPECT_EQ(*integer(" -1"), -1);
  EXPECT_EQ(*integer("12"), 12);
  for (const char* text :
       {"13", "-2", "9223372036854775808", "1.0", "1e0", "01", "-00", "-", "x", ""}) {
    EXPECT_THAT(integer(text), StatusIs(StatusCode::kInvalidArgument,
                                        HasSubstr("column 1: expected a stage as an integer from "
                                                  "-1 to 12, found ")))
        << text;
  }
}

TEST(JsonCursor, LooksAhead) {
  JsonCursor json(R"( null [1, 2.5, "a\"b", "c"] )");
  EXPECT_EQ(json.Peek(), 'n');
  EXPECT_FALSE(json.TakeWord("true"));
  EXPECT_TRUE(json.TakeWord("null"));
  std::vector<bool> integers;
  ASSERT_OK(json.Array("a list", [&]() -> Status {
    integers.push_back(json.IsIntNext());
    return json.Value("a value").status();
  }));
  EXPECT_EQ(integers, (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(json.Peek(), '\0');
  EXPECT_OK(json.ExpectEnd());
}

TEST(JsonCursor, PlainStringsHaveNoEscapes) {
  const std::string text = R"( "shared")";
  ASSERT_OK_AND_ASSIGN(const std::string_view plain, JsonCursor(text).PlainString("a scope"));
  EXPECT_EQ(plain.data(), text.data() + 2);
  EXPECT_EQ(plain, "shared");
  EXPECT_THAT(JsonCursor(R"( "ab\u0041")").PlainString("a scope"),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("column 5: expected a scope without escapes, found '\\u0041")));
}

TEST(JsonCursor, ArraysEndWhereTheirFirstMistakeIs) {
  const auto sum = [](std::string_view text) -> StatusOr<int64_t> {
    JsonCursor json(text);
    int64_t total = 0;
    KILN_RETURN_IF_ERROR(json.Array("a list", [&]() -> Status {
      KILN_ASSIGN_OR_RETURN(const int64_t item, json.Int("an item"));
      total += item;
      return OkStatus();
    }));
    return total;
  };
  EXPECT_EQ(*sum("[]"), 0);
  EXPECT_EQ(*sum("[ 1,2 , 3]"), 6);
  EXPECT_THAT(sum("1"), StatusIs(StatusCode::kInvalidArgument,
                                 HasSubstr("column 1: expected '[' (a list), found '1'")));
  EXPECT_THAT(sum("[1,]"), StatusIs(StatusCode::kInvalidArgument,
                                    HasSubstr("column 4: expected an item, found ']'")));
}

TEST(JsonCursor, QuotedTextDecodesToItself) {
  std::mt19937_64 rng(7);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (uint64_t n = rng() % 20; n > 0; --n) text += static_cast<char>(rng() % 256);
    ASSERT_OK_AND_ASSIGN(const std::string decoded, String(JsonQuote(text)));
    EXPECT_EQ(decoded, text);
  }
}

}  // namespace
}  // namespace kiln
