#include "search/templates/config_space.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/status_testing.h"

namespace kiln::search {
namespace {

using testing::HasSubstr;
using Sizes = std::vector<int64_t>;
using Words = std::vector<std::string>;

template <typename T>
std::vector<T> EntitiesOf(const Knob& knob) {
  std::vector<T> all;
  for (const Entity& entity : knob.entities()) all.push_back(std::get<T>(entity));
  return all;
}

std::vector<Sizes> SplitsOf(int64_t extent, const SplitOptions& options) {
  const StatusOr<Knob> knob = Knob::Split("tile", extent, options);
  KILN_CHECK(knob.ok(), "{}", Message(knob.status()));
  std::vector<Sizes> all;
  for (const SplitEntity& split : EntitiesOf<SplitEntity>(*knob)) all.push_back(split.sizes);
  return all;
}

std::vector<Sizes> OrdersOf(int loops, const ReorderOptions& options) {
  const StatusOr<Knob> knob = Knob::Reorder("order", loops, options);
  KILN_CHECK(knob.ok(), "{}", Message(knob.status()));
  std::vector<Sizes> all;
  for (const ReorderEntity& order : EntitiesOf<ReorderEntity>(*knob)) all.push_back(order.order);
  return all;
}

std::vector<Words> AnnotationsOf(int loops, std::string_view policy) {
  const StatusOr<Knob> knob = Knob::Annotate("ann", loops, policy);
  KILN_CHECK(knob.ok(), "{}", Message(knob.status()));
  std::vector<Words> all;
  for (const AnnotateEntity& a : EntitiesOf<AnnotateEntity>(*knob)) all.push_back(a.words);
  return all;
}

// ---- splits -----------------------------------------------------------------------------------

bool IsPowerOfTwo(int64_t n) { return (n & (n - 1)) == 0; }

// Lists all tuples of numbers up to the extent that the rules keep, sorted innermost first. Works
// only for policies with ascending factors.
std::vector<Sizes> BruteForce(int64_t extent, const SplitOptions& options) {
  const bool no_tail = options.no_tail.value_or(options.policy == SplitPolicy::kFactors);
  std::vector<Sizes> kept;
  Sizes sizes(static_cast<size_t>(options.num_outputs), 1);
  sizes[0] = -1;
  while (true) {
    int64_t product = 1;
    bool allowed = true;
    for (size_t i = 1; i < sizes.size(); ++i) {
      product *= sizes[i];
      const bool is_factor =
          options.policy == SplitPolicy::kFactors ? extent % sizes[i] == 0 : IsPowerOfTwo(sizes[i]);
      allowed = allowed && is_factor && sizes[i] <= options.max_factor;
    }
    if (allowed && product <= extent && (extent % product == 0 || (!no_tail && product < extent)))
      kept.push_back(sizes);
    size_t i = 1;
    while (i < sizes.size() && ++sizes[i] > extent) sizes[i++] = 1;
    if (i == sizes.size()) break;
  }
  std::ranges::sort(kept, [](const Sizes& a, const Sizes& b) {
    return std::ranges::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  });
  return kept;
}

TEST(SplitKnob, IsBruteForceOnSmallExtents) {
  for (int64_t extent = 1; extent <= 36; ++extent) {
    for (int outputs = 2; outputs <= (extent <= 12 ? 4 : 3); ++outputs) {
      for (const SplitPolicy policy : {SplitPolicy::kFactors, SplitPolicy::kPower2}) {
        for (const int64_t max_factor : {int64_t{1} << 31, int64_t{4}}) {
          for (const std::optional<bool> no_tail :
               {std::optional<bool>(), std::optional(true), std::optional(false)}) {
            const SplitOptions options{.policy = policy,
                                       .num_outputs = outputs,
                                       .max_factor = max_factor,
                                       .no_tail = no_tail};
            EXPECT_EQ(SplitsOf(extent, options), BruteForce(extent, options))
                << extent << " into " << outputs << ", policy " << static_cast<int>(policy);
          }
        }
      }
    }
  }
}

TEST(SplitKnob, TheInnermostSizeChangesSlowest) {
  EXPECT_EQ(SplitsOf(6, {.num_outputs = 3}), (std::vector<Sizes>{{-1, 1, 1},
                                                                 {-1, 2, 1},
                                                                 {-1, 3, 1},
                                                                 {-1, 6, 1},
                                                                 {-1, 1, 2},
                                                                 {-1, 3, 2},
                                                                 {-1, 1, 3},
                                                                 {-1, 2, 3},
                                                                 {-1, 1, 6}}));
}

TEST(SplitKnob, VerboseFollowsTheSetsOfCPython) {
  Sizes inner;
  for (const Sizes& sizes : SplitsOf(112, {.policy = SplitPolicy::kVerbose}))
    inner.push_back(sizes[1]);
  EXPECT_EQ(inner, (Sizes{32, 1, 2, 64, 4, 7, 8, 14, 16, 112, 56, 28}));
  // autotvm (v0.8) gives this for get_factors(12) and get_pow2s(12), with three loops and all
  // tails.
  EXPECT_EQ(SplitsOf(3, {.policy = SplitPolicy::kVerbose, .num_outputs = 3}),
            (std::vector<Sizes>{{-1, 1, 1}, {-1, 2, 1}, {-1, 3, 1}, {-1, 1, 2}, {-1, 1, 3}}));
}

TEST(SplitKnob, CandidatesAndFilters) {
  EXPECT_EQ(SplitsOf(16, {.policy = SplitPolicy::kCandidate,
                          .num_outputs = 2,
                          .candidates = {{4, 4}, {-1, 2}, {1, 16}}}),
            (std::vector<Sizes>{{4, 4}, {-1, 2}, {1, 16}}));
  EXPECT_EQ(SplitsOf(16, {.filter = [](std::span<const int64_t> s) { return s.back() >= 4; }}),
            (std::vector<Sizes>{{-1, 4}, {-1, 8}, {-1, 16}}));
}

TEST(SplitKnob, Refusals) {
  EXPECT_THAT(Knob::Split("t", 0, {}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("extent 0")));
  EXPECT_THAT(Knob::Split("t", 8, {.num_outputs = 1}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("into 1 loops")));
  EXPECT_THAT(Knob::Split("t", 8, {.policy = SplitPolicy::kCandidate, .candidates = {{1, 2, 4}}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("has 3 sizes, expected 2")));
  EXPECT_THAT(Knob::Split("t", 8, {.policy = SplitPolicy::kCandidate, .candidates = {{-1, 0}}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("has the size 0")));
  EXPECT_THAT(Knob::Split("t", 8, {.filter = [](std::span<const int64_t>) { return false; }}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("has no value")));
  EXPECT_THAT(Knob::Split("t", int64_t{1} << 40, {.num_outputs = 16}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("max_factor")));
}

// ---- orders -----------------------------------------------------------------------------------

TEST(ReorderKnob, Policies) {
  EXPECT_EQ(OrdersOf(3, {.policy = ReorderPolicy::kIdentity}), (std::vector<Sizes>{{0, 1, 2}}));
  EXPECT_EQ(OrdersOf(3, {.policy = ReorderPolicy::kAll}),
            (std::vector<Sizes>{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}));
  EXPECT_EQ(OrdersOf(4, {.policy = ReorderPolicy::kIntervalAll, .begin = 1, .end = 3}),
            (std::vector<Sizes>{{0, 1, 2, 3}, {0, 2, 1, 3}}));
  EXPECT_EQ(
      OrdersOf(3, {.policy = ReorderPolicy::kCandidate, .candidates = {{2, 1, 0}, {1, 0, 2}}}),
      (std::vector<Sizes>{{2, 1, 0}, {1, 0, 2}}));
}

// autotvm (v0.8) gives these orders for two spatial chains of three loops and two reduce chains of
// two.
TEST(ReorderKnob, Interleaving) {
  const std::vector<Sizes> spatial = {{0, 1, 2}, {3, 4, 5}}, reduce = {{6, 7}, {8, 9}};
  EXPECT_EQ(
      OrdersOf(10, {.policy = ReorderPolicy::kInterleave, .spatial = spatial, .reduce = reduce}),
      (std::vector<Sizes>{{0, 3, 1, 4, 6, 8, 2, 5, 7, 9}}));
  EXPECT_EQ(
      OrdersOf(10,
               {.policy = ReorderPolicy::kInterleaveCuda, .spatial = spatial, .reduce = reduce}),
      (std::vector<Sizes>{{0, 3, 1, 4, 6, 8, 7, 9, 2, 5}}));
  EXPECT_THAT(
      Knob::Reorder("o", 3,
                    {.policy = ReorderPolicy::kInterleave, .spatial = {{0, 1}}, .reduce = {}}),
      StatusIs(StatusCode::kInvalidArgument, HasSubstr("is no order of 3 loops")));
}

TEST(ReorderKnob, Refusals) {
  EXPECT_FALSE(Knob::Reorder("o", 12, {.policy = ReorderPolicy::kAll}).ok());
  EXPECT_FALSE(
      Knob::Reorder("o", 3, {.policy = ReorderPolicy::kCandidate, .candidates = {{0, 0, 1}}}).ok());
  EXPECT_FALSE(
      Knob::Reorder("o", 3, {.policy = ReorderPolicy::kIntervalAll, .begin = 2, .end = 5}).ok());
}

// ---- annotations ------------------------------------------------------------------------------

TEST(AnnotateKnob, WordsOfEachLoop) {
  EXPECT_EQ(AnnotationsOf(2, "try_unroll_vec"), (std::vector<Words>{{"none", "none"},
                                                                    {"none", "unroll"},
                                                                    {"none", "vec"},
                                                                    {"unroll", "none"},
                                                                    {"unroll", "unroll"},
                                                                    {"unroll", "vec"},
                                                                    {"vec", "none"},
                                                                    {"vec", "unroll"}}));
  EXPECT_EQ(AnnotationsOf(2, "unroll"), (std::vector<Words>{{"unroll", "unroll"}}));
  EXPECT_EQ(AnnotationsOf(1, "none_vec"), (std::vector<Words>{{"none"}, {"vec"}}));
  EXPECT_FALSE(Knob::Annotate("a", 2, "vec").ok());  // two vectors: no value is left
  EXPECT_THAT(Knob::Annotate("a", 2, "try_spin"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("unknown policy 'try_spin'")));
}

TEST(AnnotateKnob, BindsToGpus) {
  EXPECT_EQ(AnnotationsOf(3, "bind_gpu"),
            (std::vector<Words>{{"fuse", "blockIdx.x", "threadIdx.x"}}));
  EXPECT_EQ(AnnotationsOf(4, "bind_gpu"),
            (std::vector<Words>{{"blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"}}));
  EXPECT_EQ(AnnotationsOf(7, "bind_gpu")[0].size(), 7u);
  EXPECT_EQ(AnnotationsOf(7, "bind_gpu")[0][0], "fuse");
  EXPECT_EQ(AnnotationsOf(3, "bind_gpu_virtual"),
            (std::vector<Words>{{"blockIdx.x", "vthread", "threadIdx.x"}}));
  EXPECT_EQ(AnnotationsOf(10, "bind_gpu_virtual")[0][1], "blockIdx.z");
  EXPECT_FALSE(Knob::Annotate("a", 1, "bind_gpu").ok());
  EXPECT_FALSE(Knob::Annotate("a", 2, "bind_gpu_virtual").ok());
}

TEST(AnnotateKnob, PlacesOfCaches) {
  ASSERT_OK_AND_ASSIGN(const Knob knob, Knob::Locate("at", 4, 2));
  std::vector<Sizes> places;
  for (const AnnotateEntity& entity : EntitiesOf<AnnotateEntity>(knob))
    places.push_back(entity.places);
  EXPECT_EQ(places, (std::vector<Sizes>{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}));
  EXPECT_EQ(knob.Description(), "Annotate(policy=locate_cache) len=6");
  EXPECT_FALSE(Knob::Locate("at", 2, 3).ok());
}

// ---- spaces -----------------------------------------------------------------------------------

// Returns the space of the tutorial's template for 1,7,7,512,512,3,3,1,1.
ConfigSpace TutorialSpace() {
  ConfigSpace space;
  const auto add = [&](const char* name, int64_t extent, int outputs) {
    KILN_CHECK(space.Add(Knob::Split(name, extent, {.num_outputs = outputs})).ok());
  };
  add("tile_f", 512, 4);
  add("tile_y", 7, 4);
  add("tile_x", 7, 4);
  add("tile_rc", 512, 3);
  add("tile_ry", 3, 3);
  add("tile_rx", 3, 3);
  KILN_CHECK(space
                 .Add(Knob::Option("auto_unroll_max_step",
                                   {{int64_t{0}}, {int64_t{512}}, {int64_t{1500}}}))
                 .ok());
  KILN_CHECK(space.Add(Knob::Option("unroll_explicit", {{int64_t{0}}, {int64_t{1}}})).ok());
  return space;
}

TEST(ConfigSpace, PrintsAsAutotvmDoes) {
  EXPECT_EQ(TutorialSpace().Print(),
            "ConfigSpace (len=10454400, space_map=\n"
            "   0 tile_f: Split(policy=factors, product=512, num_outputs=4) len=220\n"
            "   1 tile_y: Split(policy=factors, product=7, num_outputs=4) len=4\n"
            "   2 tile_x: Split(policy=factors, product=7, num_outputs=4) len=4\n"
            "   3 tile_rc: Split(policy=factors, product=512, num_outputs=3) len=55\n"
            "   4 tile_ry: Split(policy=factors, product=3, num_outputs=3) len=3\n"
            "   5 tile_rx: Split(policy=factors, product=3, num_outputs=3) len=3\n"
            "   6 auto_unroll_max_step: OtherOption([0, 512, 1500]) len=3\n"
            "   7 unroll_explicit: OtherOption([0, 1]) len=2\n"
            ")\n");
}

// In a line of a public log of conv2d_NCHWc.x86, index 249 has these values.
TEST(ConfigSpace, IndicesAreThoseOfRecords) {
  ConfigSpace space;
  ASSERT_OK(space.Add(Knob::Split("tile_ic", 3, {})));
  ASSERT_OK(space.Add(Knob::Split("tile_oc", 64, {})));
  ASSERT_OK(space.Add(
      Knob::Split("tile_ow", 112,
                  {.policy = SplitPolicy::kVerbose,
                   .filter = [](std::span<const int64_t> sizes) { return sizes.back() <= 64; }})));
  ASSERT_OK(space.Add(Knob::Option("unroll_kw", {{true}, {false}})));
  const Config config = space.Get(249);
  EXPECT_EQ(PrintEntities(config.entities),
            R"([["tile_ic", "sp", [-1, 3]], ["tile_oc", "sp", [-1, 32]], )"
            R"(["tile_ow", "sp", [-1, 8]], ["unroll_kw", "ot", false]])");
  EXPECT_EQ(*space.IndexOf(config.entities), 249);
  EXPECT_EQ(space.range(), 2 * 7 * 11 * 2);
}

ConfigSpace SmallSpace() {
  ConfigSpace space;
  KILN_CHECK(space.Add(Knob::Split("a", 6, {})).ok());
  KILN_CHECK(space.Add(Knob::Reorder("b", 3, {.policy = ReorderPolicy::kAll})).ok());
  KILN_CHECK(space.Add(Knob::Annotate("c", 2, "try_vec")).ok());
  KILN_CHECK(space.Add(Knob::Option("d", {{std::string("x")}, {2.5}, {}})).ok());
  return space;
}

TEST(ConfigSpace, EveryIndexIsFoundByItsValues) {
  const ConfigSpace space = SmallSpace();
  EXPECT_EQ(space.range(), 4 * 6 * 3 * 3);
  std::set<std::string> texts;
  for (int64_t index = 0; index < space.range(); ++index) {
    const Config config = space.Get(index);
    EXPECT_EQ(config.index, index);
    EXPECT_EQ(space.Index(space.Digits(index)), index);
    EXPECT_EQ(*space.IndexOf(config.entities), index);
    const std::string text = PrintEntities(config.entities);
    EXPECT_TRUE(texts.insert(text).second) << text;
    ASSERT_OK_AND_ASSIGN(const std::vector<NamedEntity> read, ParseEntities(text));
    EXPECT_EQ(read, config.entities) << text;
  }
}

TEST(ConfigSpace, OtherValuesHaveNoIndex) {
  const ConfigSpace space = SmallSpace();
  std::vector<NamedEntity> entities = space.Get(0).entities;
  entities[0].second = SplitEntity{{-1, 4}};
  EXPECT_THAT(space.IndexOf(entities),
              StatusIs(StatusCode::kNotFound, HasSubstr("knob a has no value [-1, 4]")));
  entities[0].first = "q";
  EXPECT_THAT(space.IndexOf(entities), StatusIs(StatusCode::kNotFound, HasSubstr("no knob q")));
  entities.erase(entities.begin());
  EXPECT_THAT(space.IndexOf(entities),
              StatusIs(StatusCode::kNotFound, HasSubstr("knob a has no value given")));
}

TEST(ConfigSpace, FiltersCountAndKeepIndices) {
  ConfigSpace space = SmallSpace();
  space.AddFilter([](std::span<const Entity* const> entities) {
    return std::get<SplitEntity>(*entities[0]).sizes[1] <= 2;
  });
  EXPECT_EQ(space.range(), 216);
  EXPECT_EQ(space.CountValid().count, 108);
  EXPECT_TRUE(space.CountValid().is_exact);
  EXPECT_THAT(space.Print(), HasSubstr("ConfigSpace (len=108, range_length=216, space_map=\n"));
  Rng rng(3);
  std::set<int64_t> seen;
  int64_t at = *space.Random(rng);
  for (int i = 0; i < 4000; ++i) {
    const int64_t next = space.RandomWalk(at, rng);
    EXPECT_NE(next, at);
    EXPECT_TRUE(space.IsValid(next));
    seen.insert(at = next);
  }
  EXPECT_EQ(seen.size(), 108u);
}

TEST(ConfigSpace, WithoutChoicesNothingMoves) {
  ConfigSpace space;
  Rng rng(1);
  EXPECT_EQ(space.range(), 1);
  EXPECT_EQ(space.RandomWalk(0, rng), 0);
  space.AddFilter([](std::span<const Entity* const>) { return false; });
  EXPECT_EQ(space.Random(rng), std::nullopt);
}

TEST(ConfigSpace, Refusals) {
  ConfigSpace space = SmallSpace();
  EXPECT_THAT(space.Add(Knob::Split("a", 6, {})),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("knob a is defined twice")));
  ConfigSpace wide;
  Status status = OkStatus();
  for (int i = 0; status.ok(); ++i) {
    ASSERT_LT(i, 30);
    status = wide.Add(Knob::Split(fmt::format("t{}", i), 1 << 12, {.num_outputs = 4}));
  }
  EXPECT_THAT(status, StatusIs(StatusCode::kInvalidArgument, HasSubstr("more than 2^62 points")));
  ConfigSpace many;
  for (int i = 0; i < 64; ++i) ASSERT_OK(many.Add(Knob::Option(fmt::format("k{}", i), {{true}})));
  EXPECT_THAT(many.Add(Knob::Option("k", {{true}})),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("more than 64")));
  ConfigSpace large;
  ASSERT_OK(large.Add(Knob::Option("a", std::vector<OptionEntity>(600'000))));
  status = large.Add(Knob::Option("b", std::vector<OptionEntity>(600'000)));
  EXPECT_THAT(status,
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected at most 1048576")));
}

// ---- the text of values -----------------------------------------------------------------------

TEST(Entities, ReadsWithAndWithoutBlanks) {
  ASSERT_OK_AND_ASSIGN(
      const auto entities,
      ParseEntities(R"( [["tile_f","sp",[-1,2,8,4]],["r","re",[1,0]],)"
                    R"(["a","an",["unroll","vec"]],["p","an",[0,2]],)"
                    R"(["n","ot",null],["f","ot",1e-05],["s","ot","a\"\\\u0001"]] )"));
  ASSERT_EQ(entities.size(), 7u);
  EXPECT_EQ(entities[0], NamedEntity("tile_f", SplitEntity{{-1, 2, 8, 4}}));
  EXPECT_EQ(entities[3], NamedEntity("p", AnnotateEntity{{}, {0, 2}}));
  EXPECT_EQ(entities[6], NamedEntity("s", OptionEntity{std::string("a\"\\\x01")}));
  EXPECT_EQ(PrintEntities(entities),
            R"([["tile_f", "sp", [-1, 2, 8, 4]], ["r", "re", [1, 0]], )"
            R"(["a", "an", ["unroll", "vec"]], ["p", "an", [0, 2]], )"
            R"(["n", "ot", null], ["f", "ot", 1e-05], ["s", "ot", "a\"\\\u0001"]])");
  EXPECT_EQ(PrintEntity(entities[2].second), "['unroll', 'vec']");
  EXPECT_EQ(PrintEntity(OptionEntity{true}), "True");
}

// Words of other programs' records may have any character.
TEST(Entities, WordsHaveTheEscapesOfJson) {
  const std::string text = "a\n\t\"\\/\u00e9\x01";
  ASSERT_OK_AND_ASSIGN(const auto entities,
                       ParseEntities(R"([["s","ot","a\n\t\"\\\/\u00e9\u0001"]])"
                                     "\r\n"));
  ASSERT_EQ(entities.size(), 1u);
  EXPECT_EQ(entities[0], NamedEntity("s", OptionEntity{text}));
  ASSERT_OK_AND_ASSIGN(const auto again, ParseEntities(PrintEntities(entities)));
  EXPECT_EQ(again, entities);
}

TEST(Entities, MistakesAreNamedByColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "column 1: expected '[' (a list of knobs), found the end"},
      {R"([["t", "sq", [1]]])", "column 8: expected a kind of knob"},
      {R"([["t", "sp", [1.5]]])",
       "column 15: expected a whole number, an integer of 64 bits, found '1.5]]]'"},
      {R"([["t", "sp", [01]]])",
       "column 15: expected a whole number, an integer of 64 bits, found '01]]]'"},
      {R"([["t", "sp", [1 2]]])", "column 17: expected ',' or ']', found '2]]]'"},
      {R"([["t", "an", ["a", 1]]])", "column 20: expected an annotation, found '1]]]'"},
      {R"([["t", "an", [1, "a"]]])", "column 18: expected a whole number, found '\"a\"]]]'"},
      {"[[\"a\tb\", \"ot\", 1]]", "column 5: expected no control character inside a string"},
      {R"([["t", "sp", [99999999999999999999]]])", "expected a whole number"},
      {R"([["t", "ot", 1e999]])", "expected a value"},
      {R"([["t, "ot", 1]])",
       "column 8: expected ',' (after the name of the knob), found 'ot\", 1]]'"},
      {R"([["t)", "column 5: expected the closing '\"' of a string"},
      {R"([["t", "sp", [1]], ])", "column 20: expected '[' (a knob: [name, kind, value])"},
      {R"([["t", "sp", [1]]] x)", "column 20: expected the end of the line, found 'x'"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(ParseEntities(text), StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)))
        << text;
  }
}

}  // namespace
}  // namespace kiln::search
