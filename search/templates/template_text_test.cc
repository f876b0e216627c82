#include "search/templates/template_text.h"

#include "base/status_testing.h"
#include "search/templates/vocabulary.h"

namespace kiln::search {
namespace {

using testing::HasSubstr;

// Has every kind of statement, knob and step.
constexpr std::string_view kEverything = R"(# a comment
template `my template` for gpu
stage conv = reduction()
stage data = input(conv, 0)
stage c = op(`odd name`)
stage last = output()
n, f = axes(conv)
k = reduce_axes(conv)
let half = extent(f) // 2 + -1
knob tile = split(f, outputs=3, policy=verbose, max_factor=2*half, no_tail=false,
                  filter=size[-1] <= 8 && size[1] % 2 == 0)
knob other = split(64, outputs=2, policy=candidate, candidate=[[-1, 4], [8, 8]])
knob order = reorder(a, b, d, policy=interval_all, interval=[0, 2])
knob chains = reorder(a, b, d, policy=interleave_cuda, spatial=[[a, b]], reduce=[[d]])
knob listed = reorder(a, b, policy=candidate, candidate=[[a, b], [b, a]])
knob ann = annotate(a, b, policy=try_unroll_vec)
knob place = annotate(a, b, d, policy=locate_cache, num_anchor=2)
knob step = [0, 512, 1500]
knob flag = [true, false]
let threads = tile[1] * tile[2]
filter threads <= 1024 || !flag
require min(threads, half, 7) > ceil_div(step, 3) - (1 - 2) * 3 && (flag || step == 0)
sums, out = accumulator(conv)
s = cache_read(data, shared, sums, c)
w = cache_write(c, local)
o, m, i = split(f, tile)
x, y = split(o, 4)
u, v = split_parts(m, threads)
z = fuse(x, y)
reorder(z, u)
reorder(ann2, z, u)
bind(z, blockIdx.x)
)";

TEST(TemplateText, PrintsAndParsesBack) {
  // Without its one line with an error (`ann2` is not a knob), the text is right.
  std::string text(kEverything);
  text.erase(text.find("reorder(ann2, z, u)\n"), 20);
  text +=
      "annotate(ann, u, v)\nunroll(u, v) if flag && step > 0\nvectorize(i)\nparallel(z)\n"
      "compute_at(s, choose(place[0], z, u, v))\ncompute_root(c)\ninline(data, last) if "
      "computed(data)\n"
      "inline_others()\nr = rfactor(k, 0)\nhint(out, auto_unroll_max_step, step)\n"
      "storage_align(i, 32, 8)\nlayout(n, f)\nbuffering(sums, 2)\nbuffering(sums, 3, async)\n"
      "fetch_by_threads(s, 4, 8, 8)\nreorder(order, z, u, v)\n";
  ASSERT_OK_AND_ASSIGN(const TemplateText parsed, ParseTemplate(text));
  EXPECT_EQ(parsed.name, "my template");
  EXPECT_TRUE(parsed.for_gpu);
  const std::string printed = PrintTemplate(parsed);
  ASSERT_OK_AND_ASSIGN(const TemplateText again, ParseTemplate(printed));
  EXPECT_EQ(again, parsed) << printed;
  EXPECT_EQ(PrintTemplate(again), printed);
  EXPECT_THAT(printed, HasSubstr("\nlet half = extent(f) // 2 + -1\n"));
  EXPECT_THAT(printed, HasSubstr("ceil_div(step, 3) - (1 - 2) * 3 && (flag || step == 0)\n"));
  // The text has every step of the language.
  for (const Primitive& primitive : Primitives())
    EXPECT_THAT(printed, HasSubstr(fmt::format("{}(", primitive.word)));
}

// Returns a template with the statement as its last line, which is line 8.
std::string With(std::string_view statement) {
  return fmt::format(
      "template t for cpu\nstage C = reduction()\ni, j = axes(C)\nk = reduce_axes(C)\n"
      "knob tile = split(i, outputs=2)\nknob flag = [0, 1]\nknob ann = annotate(a, b, "
      "policy=try_vec)\n"
      "{}\n",
      statement);
}

TEST(TemplateText, MistakesHaveAPlace) {
  EXPECT_OK(ParseTemplate(With("io, ii = split(i, tile)")));
  const std::pair<const char*, const char*> cases[] = {
      {"oops", "line 9, column 1: expected '=' or ',' after a name, found the end"},
      {"splt(i, tile)", "line 8, column 1: unknown step 'splt', expected one of axes, "},
      {"splt(i, tile)", "did you mean split"},
      {"io, ii = split(q, tile)", "line 8, column 16: expected a loop, found q"},
      {"io, ii = split(C, tile)", "line 8, column 16: expected a loop, found C, a stage"},
      {"io, ii = split(i, ann)",
       "line 8, column 19: expected a number, found ann, a knob of annot"},
      {"split(i, tile)", "line 8, column 1: split gives loops, found 0 names"},
      {"a = unroll(i)", "line 8, column 5: unroll gives nothing, found 1 names"},
      {"unroll()", "line 8, column 1: unroll takes (loops), found 0 arguments"},
      {"knob tile = [1]", "tile stands for a knob of a split already"},
      {"let C = 3", "C stands for a stage already"},
      {"tile = axes(C)", "tile stands for a knob of a split already"},
      {"let x = 1 +", "line 9, column 1: expected a number or a name, found the end"},
      {"let x = (1 + 2", "expected ')' after an expression"},
      {"let x = tile", "expected a number, found tile, a knob of a split"},
      {"let x = flag[0]", "expected a knob of a split or of places before '['"},
      {"let x = 99999999999999999999", "does not fit"},
      {"let x = size[0]", "expected a knob of a split or of places before '[', found size"},
      {"let x = sin(3)", "unknown function 'sin'"},
      {"let x = ceil_div(3)", "ceil_div takes two numbers, found 1"},
      {"knob x = spilt(i, outputs=2)", "unknown kind of knob 'spilt'"},
      {"knob x = split(i)", "line 8, column 1: expected the option outputs"},
      {"knob x = split(i, outputs=1)", "expected a number of loops from 2 to 16, found 1"},
      {"knob x = split(i, outputs=2, policy=odd)", "unknown policy 'odd', expected one of factors"},
      {"knob x = split(i, outputs=2, ways=3)", "unknown option 'ways' of a split knob"},
      {"knob x = split(i, outputs=2, outputs=3)", "option outputs is given twice"},
      {"knob x = split(i, outputs=2, max_factor=flag)", "flag depends on knobs"},
      {"knob x = split(i, outputs=2, policy=candidate)", "needs the option candidate"},
      {"knob x = split(i, outputs=2, candidate=[1, 2])", "expected a list of lists"},
      {"knob x = reorder(a, a, policy=all)", "loop a is named twice"},
      {"knob x = reorder(a, b)", "expected the option policy"},
      {"knob x = reorder(a, b, policy=candidate, candidate=[[a, q]])", "q is none of the loops"},
      {"knob x = reorder(a, b, policy=interval_all)", "needs the option interval"},
      {"knob x = annotate(a, policy=locate_cache)", "num_anchor belongs to"},
      {"knob x = []", "expected the values of the knob x"},
      {"stage x = input(C)", "input takes (stage number), found 1 arguments"},
      {"stage x = outside()", "unknown place 'outside' of a stage"},
      {"a, b = axes(C) if flag", "a step that gives names has no condition"},
      {"unroll(i) if C", "expected a number, found C, a stage"},
      {"unroll(i, x=3)", "expected an argument without '='"},
      {"if = axes(C)", "found the word if of the language"},
      {"unroll(i) knob x = [1]", "line 8, column 11: stages, knobs and filters stand before"},
      {"compute_at(C, choose(0))", "choose takes (number loops)"},
      {"let x = \x01", "line 8, column 9"},
  };
  for (const auto& [statement, message] : cases) {
    EXPECT_THAT(ParseTemplate(With(statement)),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)))
        << statement;
  }
}

TEST(TemplateText, TheHeadIsNeeded) {
  EXPECT_THAT(ParseTemplate(""), StatusIs(StatusCode::kInvalidArgument,
                                          HasSubstr("line 1, column 1: expected 'template'")));
  EXPECT_THAT(ParseTemplate("template t"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("'for'")));
  EXPECT_THAT(
      ParseTemplate("template t for tpu"),
      StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected cpu or gpu, found 'tpu'")));
  EXPECT_THAT(ParseTemplate("template knob for cpu"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("found the word knob")));
  EXPECT_OK(ParseTemplate("template t for cpu"));
}

TEST(TemplateText, LongAndDeepTextsAreRefused) {
  EXPECT_THAT(ParseTemplate(std::string(kMaxTemplateBytes + 1, ' ')),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("bytes, expected at most")));
  const std::string deep = std::string(5000, '(') + "1" + std::string(5000, ')');
  EXPECT_THAT(ParseTemplate(With("let x = " + deep)),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("at most 100 deep")));
  EXPECT_FALSE(ParseTemplate(With("let x = " + std::string(5000, '-') + "1")).ok());
  std::string sum = "let x = 1";
  for (int i = 0; i < 5000; ++i) sum += " + 1";
  EXPECT_FALSE(ParseTemplate(With(sum)).ok());
  std::string many = "template t for cpu\n";
  for (size_t i = 0; i <= kMaxTemplateStatements; ++i) many += fmt::format("let x{} = 1\n", i);
  EXPECT_THAT(ParseTemplate(many),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("at most 4096 statements")));
}

// ---- numbers ----------------------------------------------------------------------------------

StatusOr<int64_t> ValueOf(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(const TemplateText parsed,
                        ParseTemplate(fmt::format("template t for cpu\nlet x = {}\n", text)));
  return Evaluate(parsed.statements[0].args[0], [](const Expression& e) -> StatusOr<int64_t> {
    if (e.text == "true" || e.text == "false") return e.text == "true";
    return InvalidArgument("no {}", e.text);
  });
}

TEST(Expressions, AreThoseOfPython) {
  const std::pair<const char*, int64_t> cases[] = {
      {"1 + 2 * 3", 7},        {"(1 + 2) * 3", 9},     {"7 // 2", 3},
      {"-7 // 2", -4},         {"-7 % 3", 2},          {"7 % -3", -2},
      {"10 - 4 - 3", 3},       {"2 < 3 && 3 <= 3", 1}, {"!(1 == 2)", 1},
      {"0 || 5", 1},           {"0 && 1 // 0", 0},     {"1 || 1 // 0", 1},
      {"min(3, 1, 2)", 1},     {"max(3, 1, 2)", 3},    {"ceil_div(7, 2)", 4},
      {"ceil_div(-7, 2)", -3}, {"ceil_div(8, 2)", 4},  {"--3", 3},
      {"-(-3) - -2", 5},       {"true + true", 2},     {"1 != 1", 0},
      {"3 >= 4", 0},           {"4 > 3", 1},           {"-9223372036854775808", INT64_MIN},
  };
  for (const auto& [text, value] : cases) {
    ASSERT_OK_AND_ASSIGN(const int64_t found, ValueOf(text));
    EXPECT_EQ(found, value) << text;
  }
}

TEST(Expressions, WhatHasNoValueIsRefused) {
  EXPECT_THAT(ValueOf("3 // 0"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("line 2, column 11: 3 // 0")));
  EXPECT_FALSE(ValueOf("3 % 0").ok());
  EXPECT_FALSE(ValueOf("ceil_div(1, 0)").ok());
  EXPECT_THAT(ValueOf("9223372036854775807 + 1"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("beyond 64 bits")));
  EXPECT_FALSE(ValueOf("-9223372036854775808 // -1").ok());
  EXPECT_FALSE(ValueOf("-(-9223372036854775807 - 1)").ok());
  EXPECT_FALSE(ValueOf("9223372036854775807 * 2").ok());
}

}  // namespace
}  // namespace kiln::search
