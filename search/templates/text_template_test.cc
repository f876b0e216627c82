#include <fstream>
#include <sstream>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/step.h"
#include "search/templates/schedule_writer.h"
#include "search/templates/template.h"
#include "search/templates/vocabulary.h"

namespace kiln::search {
namespace {

using testing::HasSubstr;

dag::DagPtr Matmul() { return *dag::BuildOp("matmul", "8,12,16"); }

TemplatePtr Parse(std::string_view body, bool gpu = false) {
  const auto parsed =
      TextTemplate::Parse(fmt::format("template t for {}\n{}", gpu ? "gpu" : "cpu", body));
  KILN_CHECK(parsed.ok(), "{}", Message(parsed.status()));
  return *parsed;
}

// Returns the steps of the configuration at `index`.
StatusOr<std::string> StepsOf(const Template& made, const dag::DagPtr& dag, int64_t index = 0) {
  KILN_ASSIGN_OR_RETURN(const ConfigSpace space, made.Space(dag));
  KILN_ASSIGN_OR_RETURN(const Instance instance, made.Instantiate(dag, space.Get(index)));
  return schedule::PrintSteps(instance.state.value().steps());
}
StatusOr<std::string> StepsOf(std::string_view body, int64_t index = 0) {
  return StepsOf(*Parse(body), Matmul(), index);
}

constexpr std::string_view kAxes = "stage C = reduction()\ni, j = axes(C)\nk = reduce_axes(C)\n";
std::string After(std::string_view body) { return std::string(kAxes) + std::string(body); }

TEST(TextTemplate, EachStepIsAStepOfTheSchedule) {
  const std::pair<const char*, const char*> cases[] = {
      {"a, b = split(i, 4)", R"([["SP", 2, 0, 8, [4], 1]])"},
      {"a, b, c = split_parts(j, 2, 3)", R"([["SP", 2, 1, 12, [2, 3], 0]])"},
      {"f = fuse(i, j)\nunroll(f)", R"([["FU", 2, [0, 1]], ["AN", 2, 0, 1]])"},
      {"reorder(k, i)", R"([["RE", 2, [2, 1, 0]]])"},
      {"reorder(i, j)", "[]"},
      {"vectorize(j)\nparallel(i)", R"([["AN", 2, 1, 2], ["AN", 2, 0, 3]])"},
      {"bind(i, vthread)", R"([["AN", 2, 0, 4]])"},
      {"hint(C, auto_unroll_max_step, 2 * 8)", R"([["PR", 2, 0, "auto_unroll_max_step$16"]])"},
      {"hint(C, auto_unroll_max_step, 0)", "[]"},
      {"p = cache_write(C, local)\ni, j = axes(C)\ncompute_at(p, i)",
       R"([["CHW", 2, "local"], ["CA", 2, 3, 0]])"},
      {"p = rfactor(k, 2)\na, b, c = axes(p)\nunroll(c)", R"([["RF", 2, 2, 2], ["AN", 2, 2, 1]])"},
      {"o = cache_write(C, local)\nlayout(j, i)",
       "line 6, column 1: a step gave stage T_matmul_NN fresh loops"},
      {"p = cache_write(C, local)\ni, j = axes(p)\nlayout(j, i)",
       R"([["CHW", 2, "local"], ["LA", 2, [1, 0]]])"},
      {"buffering(C, 3, async)", R"([["BF", 2, 3, 1]])"},
      {"unroll(k) if extent(k) > 16", "[]"},
      {"unroll(k) if extent(k) == 16 && !computed(C) || true", R"([["AN", 2, 2, 1]])"},
      {"let n = extent(i) // 3\na, b = split(i, n)", R"([["SP", 2, 0, 8, [2], 1]])"},
      {"unroll(choose(1, i, j, k))", R"([["AN", 2, 1, 1]])"},
  };
  for (const auto& [body, steps] : cases) {
    const StatusOr<std::string> found = StepsOf(After(body));
    if (found.ok()) {
      EXPECT_EQ(*found, steps) << body;
    } else {
      EXPECT_THAT(found, StatusIs(testing::_, HasSubstr(steps))) << body;
    }
  }
}

// A handle keeps its stage or loop while others are inserted and split around it.
TEST(TextTemplate, NamesFollowTheirStages) {
  EXPECT_EQ(*StepsOf("stage A = op(p0)\nstage B = op(p1)\nstage C = reduction()\n"
                     "a = cache_read(A, shared, C)\nb = cache_read(B, shared, C)\n"
                     "i, j = axes(C)\nk = reduce_axes(C)\nko, ki = split(k, 4)\n"
                     "reorder(ko, i, j, ki)\ncompute_at(b, ko)\ncompute_at(a, i)\nvectorize(ki)\n"),
            R"([["CHR", 0, "shared", [2]], ["CHR", 2, "shared", [3]], ["SP", 4, 2, 16, [4], 1], )"
            R"(["RE", 4, [2, 0, 1, 3]], ["CA", 3, 4, 0], ["CA", 1, 4, 1], ["AN", 4, 3, 2]])");
}

TEST(TextTemplate, AccumulatorsAreTheReductionOrACopy) {
  const TemplatePtr made = Parse(
      "stage C = reduction()\nsums, out = accumulator(C)\ninline_others()\n"
      "i, j = axes(out)\ncompute_at(sums, i)\n");
  EXPECT_EQ(*StepsOf(*made, Matmul()), R"([["CHW", 2, "local"], ["CA", 2, 3, 0]])");
  EXPECT_EQ(*StepsOf(*made, *dag::BuildOp("matmul", "8,12,16", {.epilogue = {"bias", "relu"}})),
            R"([["CI", 4], ["CA", 2, 5, 0]])");
}

TEST(TextTemplate, KnobsBecomeLengthsOrdersAndAnnotations) {
  const std::string body = After(
      "knob tile = split(i, outputs=3)\n"
      "knob order = reorder(a, b, policy=all)\n"
      "knob ann = annotate(a, b, policy=try_unroll_vec)\n"
      "knob at = annotate(a, b, policy=locate_cache, num_anchor=1)\n"
      "knob step = [0, 64]\n"
      "p = cache_write(C, local)\ni, j = axes(C)\n"
      "io, im, ii = split(i, tile)\nreorder(order, io, im)\nannotate(ann, ii, j)\n"
      "compute_at(p, choose(at[0], io, im))\nhint(C, auto_unroll_max_step, step)\n");
  ASSERT_OK_AND_ASSIGN(const ConfigSpace space, Parse(body)->Space(Matmul()));
  EXPECT_EQ(space.range(), 10 * 2 * 8 * 2 * 2);
  const std::vector<int> digits = {/*[-1, 2, 2]*/ 5, 1, /*unroll, vec*/ 5, 1, 1};
  EXPECT_EQ(PrintEntity(space.Get(space.Index(digits)).entities[0].second), "[-1, 2, 2]");
  EXPECT_EQ(*StepsOf(body, space.Index(digits)),
            R"([["CHW", 2, "local"], ["SP", 3, 0, 8, [2, 2], 1], ["RE", 3, [1, 0, 2, 3]], )"
            R"(["AN", 3, 2, 1], ["AN", 3, 3, 2], ["CA", 2, 3, 0], )"
            R"(["PR", 3, 0, "auto_unroll_max_step$64"]])");
}

TEST(TextTemplate, BindingKnobsFuseWhatIsTooMuch) {
  EXPECT_EQ(*StepsOf(After("knob b = annotate(x, y, z, policy=bind_gpu)\n"
                           "o, m, l = split(i, 2, 2)\nannotate(b, o, m, l)\n")),
            R"([["SP", 2, 0, 8, [2, 2], 1], ["FU", 2, [0, 1]], ["AN", 2, 0, 5], ["AN", 2, 1, 6]])");
}

TEST(TextTemplate, ThreadsFetchTogether) {
  EXPECT_EQ(*StepsOf("stage A = op(p0)\nstage C = reduction()\na = cache_read(A, shared, C)\n"
                     "i, j = axes(C)\ncompute_at(a, i)\nfetch_by_threads(a, 4, 2, 8)\n"),
            R"([["CHR", 0, "shared", [2]], ["CA", 1, 3, 0], ["FU", 1, [0, 1]], )"
            R"(["SP", 1, 0, 0, [4], 1], ["AN", 1, 1, 2], ["SP", 1, 0, 0, [2, 8], 0], )"
            R"(["AN", 1, 0, 8], ["AN", 1, 1, 6]])");
}

TEST(TextTemplate, ConfigurationsThatDoNotWorkSayWhy) {
  const std::string body = After(
      "knob tile = split(i, outputs=2)\nknob n = [1, 2]\nlet both = tile[1] * n\n"
      "require both < 8\na, b = split(i, tile)\n");
  EXPECT_EQ(*StepsOf(body, 2), R"([["SP", 2, 0, 8, [4], 1]])");
  EXPECT_THAT(StepsOf(body, 3),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("line 8, column 1: the configuration does not meet require both < "
                                 "8: 8 < 8")));
  EXPECT_THAT(StepsOf(body, 6), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("8 < 8")));
  // The configuration belongs to another space.
  const TemplatePtr made = Parse(body);
  EXPECT_THAT(made->Instantiate(Matmul(), {}).status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no value of knob tile")));
}

TEST(TextTemplate, StepsThatRefuseAreNamedByPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"a, b = split(i, 4)\nunroll(i)",
       "line 6, column 1: loop i of stage T_matmul_NN has been split or fused"},
      {"a = fuse(i, k)", "line 5, column 5: fuse #0 (FU) of stage 2 (T_matmul_NN): loops [0, 2]"},
      {"unroll(i)\nvectorize(i)", "line 6, column 1: annotate #1 (AN)"},
      {"a, b = split(i, 0)", "a length below 1"},
      {"a, b, c = split(i, 2)", "split gives 2 loops, found 3 names"},
      {"reorder(i, i)", "a loop is named twice"},
      {"bind(i, blockIdx.w)", "line 5, column 9: found blockIdx.w, expected one of vthread"},
      {"hint(C, unrolling, 3)", "unknown hint unrolling, expected one of auto_unroll_max_step"},
      {"buffering(C, 3, fast)", "expected async, found fast"},
      {"unroll(choose(3, i, j, k))", "loop 3 of 3 loops is chosen, expected 0 to 2"},
      {"a, b = axes(C)\nx, y, z = axes(C)", "axes gives 2 loops, found 3 names"},
      {"let x = extent(i) // (extent(k) - 16)", "line 5, column 19: 8 // 0"},
      {"p = cache_write(C, local)\ni, j = axes(C)\ncompute_at(p, i)\nreorder(j, i)",
       "order the loops before compute_at"},
      {"p = cache_write(C, local)\nu, v = axes(p)\ni, j = axes(C)\nfuse2 = fuse(u, j)",
       "the loops are of stages"},
      {"p = cache_write(C, local)\ni, j = axes(C)\ncompute_at(p, i)\nu, v = axes(p)\n"
       "let x = extent(u)",
       "the extent of loop i of stage T_matmul_NN.local is not known"},
      {"inline(C)", "compute inline #0 (CI)"},
  };
  for (const auto& [body, message] : cases)
    EXPECT_THAT(StepsOf(After(body)), StatusIs(testing::_, HasSubstr(message))) << body;
}

TEST(TextTemplate, ComputationsThatAreNotForItAreRefused) {
  const dag::DagPtr relu = *dag::BuildOp("relu", "8,8");
  EXPECT_THAT(
      Parse(After("knob t = split(i, outputs=2)"))->Space(relu),
      StatusIs(StatusCode::kInvalidArgument,
               HasSubstr("line 2, column 1: the computation has 0 reductions, expected one")));
  EXPECT_THAT(Parse("stage C = reduction()\ni, j, k = axes(C)\nknob t = split(i, outputs=2)")
                  ->Space(Matmul()),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("axes gives 2 loops, found 3")));
  EXPECT_THAT(Parse("stage C = reduction()\nstage x = input(C, 2)\nknob t = [1]")->Space(Matmul()),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("reads 2 others")));
  EXPECT_THAT(Parse("stage x = op(conv)\nknob t = [1]")->Space(Matmul()),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no operator conv")));
  EXPECT_THAT(Parse(After("knob t = split(extent(i) - 8, outputs=2)"))->Space(Matmul()),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("line 5, column 1: knob t splits")));
}

TEST(TextTemplate, NumbersOfNumbersAreBounded) {
  std::string body = After("knob a = [1, 2]\nlet x0 = a + 1\n");
  for (int i = 1; i < 40; ++i) body += fmt::format("let x{} = x{} + x{}\n", i, i - 1, i - 1);
  EXPECT_THAT(Parse(body + "filter x39 > 0\n")->Space(Matmul()),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("more than 10000 operations")));
}

TEST(TextTemplate, FiltersAreOfTheSpace) {
  const std::string body = After(
      "knob a = split(i, outputs=2)\nknob b = split(j, outputs=2)\nlet area = a[1] * b[-1]\n"
      "let most = extent(k) // 2\nfilter area <= most && a[1] > 1\nx, y = split(i, a)\n");
  ASSERT_OK_AND_ASSIGN(const ConfigSpace space, Parse(body)->Space(Matmul()));
  EXPECT_EQ(space.range(), 4 * 6);
  int64_t valid = 0;
  for (int64_t index = 0; index < space.range(); ++index) {
    const Config config = space.Get(index);
    const int64_t a = std::get<SplitEntity>(config.entities[0].second).sizes[1];
    const int64_t b = std::get<SplitEntity>(config.entities[1].second).sizes[1];
    EXPECT_EQ(space.IsValid(index), a * b <= 8 && a > 1) << a << " " << b;
    EXPECT_EQ(StepsOf(body, index).ok(), space.IsValid(index));
    valid += space.IsValid(index);
  }
  EXPECT_EQ(space.CountValid().count, valid);
}

// Tests the example of the docs, and the output that they state for it.
TEST(TextTemplate, TheExampleOfTheDocsIsRight) {
  std::ifstream file("docs/templates.md");  // tests run in the root of the runfiles
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string doc = stream.str();
  const size_t begin = doc.find("template product for cpu");
  ASSERT_NE(begin, std::string::npos);
  const std::string text = doc.substr(begin, doc.find("```", begin) - begin);
  ASSERT_OK_AND_ASSIGN(const TemplatePtr made, TextTemplate::Parse(text));
  const dag::DagPtr dag = *dag::BuildOp("matmul", "64,64,64");
  ASSERT_OK_AND_ASSIGN(const ConfigSpace space, made->Space(dag));
  std::istringstream lines(space.Print());
  for (std::string line; std::getline(lines, line);)
    EXPECT_THAT(doc.substr(begin), HasSubstr("    " + line + "\n"));
  Rng rng(1);
  for (int i = 0; i < 50; ++i)
    EXPECT_OK(made->Instantiate(dag, space.Get(*space.Random(rng))).status());
  // The tables of the docs have all steps.
  for (const Primitive& primitive : Primitives())
    EXPECT_THAT(doc, HasSubstr(fmt::format("{}(", primitive.word)));
}

// The same template, written in C++.
class CppTemplate final : public Template {
 public:
  std::string_view name() const override { return "cpp"; }
  bool for_gpu() const override { return false; }
  StatusOr<ConfigSpace> Space(const dag::DagPtr& dag) const override {
    ScheduleWriter writer(dag);
    const StageRef product = writer.Reduction();
    const std::vector<LoopRef> axes = writer.Axes(product);
    const std::vector<LoopRef> sums = writer.ReduceAxes(product);
    KILN_RETURN_IF_ERROR(writer.status());
    ConfigSpace space;
    KILN_RETURN_IF_ERROR(
        space.Add(Knob::Split("tile_i", writer.Extent(axes[0]), {.num_outputs = 3})));
    KILN_RETURN_IF_ERROR(space.Add(Knob::Split("tile_k", writer.Extent(sums[0]), {})));
    KILN_RETURN_IF_ERROR(space.Add(Knob::Reorder("order", 2, {.policy = ReorderPolicy::kAll})));
    return space;
  }
  StatusOr<Instance> Instantiate(const dag::DagPtr& dag, const Config& config) const override {
    const auto& tile_i = std::get<SplitEntity>(*config.Find("tile_i"));
    ScheduleWriter writer(dag);
    const auto [sums, out] = writer.Accumulator(writer.Reduction());
    writer.InlineOthers();
    const std::vector<LoopRef> axes = writer.Axes(out);
    const std::vector<LoopRef> i = writer.Split(axes[0], tile_i);
    const LoopRef tasks = writer.Fuse(std::vector{i[0], i[1]});
    writer.Annotate(tasks, schedule::Annotation::kParallel);
    writer.ComputeAt(sums, i[2]);
    const std::vector<LoopRef> k =
        writer.Split(writer.ReduceAxes(sums)[0], std::get<SplitEntity>(*config.Find("tile_k")));
    const std::vector<LoopRef> spatial = writer.Axes(sums);
    writer.Reorder(std::vector{spatial[0], k[0], k[1], spatial[1]});
    writer.Reorder(std::vector{k[0], k[1]}, std::get<ReorderEntity>(*config.Find("order")));
    writer.Annotate(spatial[1], schedule::Annotation::kVectorize);
    return std::move(writer).Finish();
  }
};

TEST(CppTemplates, MakeWhatTheirTextsMake) {
  const TemplatePtr text = Parse(
      "stage product = reduction()\ni, j = axes(product)\nk = reduce_axes(product)\n"
      "knob tile_i = split(i, outputs=3)\nknob tile_k = split(k, outputs=2)\n"
      "knob order = reorder(a, b, policy=all)\n"
      "sums, out = accumulator(product)\ninline_others()\ni, j = axes(out)\n"
      "io, im, ii = split(i, tile_i)\ntasks = fuse(io, im)\nparallel(tasks)\ncompute_at(sums, ii)\n"
      "i, j = axes(sums)\nk = reduce_axes(sums)\nko, ki = split(k, tile_k)\n"
      "reorder(i, ko, ki, j)\nreorder(order, ko, ki)\nvectorize(j)\n");
  const CppTemplate cpp;
  for (const char* epilogue : {"", "bias,relu"}) {
    const dag::DagPtr dag =
        *dag::BuildOp("matmul", "8,12,16", {.epilogue = dag::SplitEpilogue(epilogue)});
    ASSERT_OK_AND_ASSIGN(const ConfigSpace space, cpp.Space(dag));
    ASSERT_OK_AND_ASSIGN(const ConfigSpace other, text->Space(dag));
    ASSERT_EQ(space.Print(), other.Print());
    for (int64_t index = 0; index < space.range(); ++index) {
      ASSERT_OK_AND_ASSIGN(const std::string steps, StepsOf(cpp, dag, index));
      EXPECT_EQ(*StepsOf(*text, dag, index), steps);
    }
  }
}

TEST(ScheduleWriter, TheFirstMistakeSticks) {
  ScheduleWriter writer(Matmul());
  const LoopRef nothing = writer.Split(LoopRef(), std::vector<int64_t>{4})[0];
  writer.Fuse(std::vector{nothing, nothing});
  writer.ComputeAt(writer.Reduction(), nothing);
  EXPECT_THAT(std::move(writer).Finish(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("a stage that is none")));
}

}  // namespace
}  // namespace kiln::search
