#include "search/space/parameters.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "search/policies/policy.h"

namespace kiln::search {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Parameters, DefaultsAreWithinTheirRanges) {
  std::set<std::string_view> names;
  for (const ParameterInfo& info : ParameterInfos()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_LE(info.least, info.value) << info.name;
    EXPECT_GE(info.most, info.value) << info.name;
    EXPECT_NE(info.what, "") << info.name;
    EXPECT_NE(info.source, "") << info.name;
  }
}

TEST(Parameters, RangesAreWhatIsAccepted) {
  for (const ParameterInfo& info : ParameterInfos()) {
    const std::string name(info.name);
    EXPECT_OK(MakeParameters({{name, info.least}}).status());
    EXPECT_OK(MakeParameters({{name, info.most}}).status());
    for (const double value : {info.least - 1, info.most * 2 + 1, std::nan("")}) {
      EXPECT_THAT(MakeParameters({{name, value}}),
                  StatusIs(StatusCode::kInvalidArgument, HasSubstr(name)))
          << value;
    }
  }
}

TEST(Parameters, AreSetByName) {
  ASSERT_OK_AND_ASSIGN(const Parameters changed,
                       MakeParameters({{"probed_elites", 3},
                                       {"pad_prob", 0.25},
                                       {"uneven_tiles", 0},
                                       {"register_buffering", 0},
                                       {"disable_change_compute_location", 1}}));
  EXPECT_EQ(changed.probed_elites, 3);
  EXPECT_EQ(changed.pad_prob, 0.25);
  EXPECT_FALSE(changed.uneven_tiles);
  EXPECT_FALSE(changed.hints[static_cast<size_t>(ir::Hint::kRegisterBuffering)]);
  EXPECT_FALSE(changed.change_compute_location);
  EXPECT_THAT(
      MakeParameters({{"eps_gredy", 0.1}}),
      StatusIs(StatusCode::kInvalidArgument,
               AllOf(HasSubstr("unknown search parameter 'eps_gredy'"),
                     HasSubstr("did you mean eps_greedy"), testing::Not(HasSubstr("tile_draws")))));
  EXPECT_THAT(MakeParameters({{"zzzzzzzzzz", 0.1}}),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("unknown search parameter 'zzzzzzzzzz'"),
                             HasSubstr("expected one of "), HasSubstr("tile_draws"))));
}

// A search works with every value that is accepted.
TEST(Parameters, EndsOfTheRangesAreSafe) {
  constexpr double kQuick = 200;
  for (const char* target : {"llvm", "cuda -arch=sm_90"}) {
    const Task task(*dag::BuildOp("matmul", "32,24,64"), *target::ParseTarget(target), {}, "[]");
    ASSERT_OK_AND_ASSIGN(const Models models, MakeModels("sketch.analytic", 1));
    for (const ParameterInfo& info : ParameterInfos()) {
      for (const double value : {info.least, std::min(info.most, kQuick)}) {
        SCOPED_TRACE(fmt::format("{} = {} for {}", info.name, value, target));
        std::map<std::string, double> values = {{"evolutionary_search_population", 16},
                                                {"evolutionary_search_num_iters", 1},
                                                {"sample_init_population", 8},
                                                {"max_rejected_draws", 50}};
        values[std::string(info.name)] = value;
        ASSERT_OK_AND_ASSIGN(const auto policy,
                             MakePolicy("sketch.analytic", task, 1,
                                        {.parameters = values, .models = models, .threads = 1}));
        for (int round = 0; round < 2; ++round) {
          const auto candidates = policy->Propose(4);
          if (!candidates.ok()) continue;  // no legal candidate was drawn
          std::vector<Observation> observations;
          for (const Candidate& candidate : *candidates)
            observations.push_back({.candidate = candidate, .valid = true, .cost_s = 1e-3});
          policy->Observe(observations);
        }
      }
    }
  }
}

TEST(Parameters, TheTableOfTheDocsIsThisOne) {
  std::ifstream file("docs/search-parameters.md");  // tests run in the root of the runfiles
  std::stringstream doc;
  doc << file.rdbuf();
  EXPECT_THAT(doc.str(),
              HasSubstr("<!-- begin table -->\n" + ParameterTable() + "<!-- end table -->\n"))
      << "bazel run //search/space:print_parameters shows what belongs between the markers";
}

}  // namespace
}  // namespace kiln::search
