// Tests the table of policies, and facts that are derived from it.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "costmodel/make_cost_model.h"
#include "search/policies/policy.h"

namespace kiln::search {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Task MakeTask() { return Task(*dag::BuildOp("matmul", "32,32,32"), {}, {}, "[]"); }

// Each policy is made with the models and the template that its row asks for, and proposes.
TEST(Policies, EachIsMadeByItsName) {
  const Task task = MakeTask();
  for (const PolicyKind* kind : Policies()) {
    EXPECT_EQ(*FindPolicy(kind->name), kind);
    EXPECT_NE(kind->what, "") << kind->name;
    ASSERT_OK_AND_ASSIGN(const Models models, MakeModels(kind->name, 1));
    EXPECT_EQ(models.learned != nullptr, !kind->learned_model.empty()) << kind->name;
    EXPECT_EQ(models.prior != nullptr, kind->uses_analytic_model) << kind->name;
    ASSERT_OK_AND_ASSIGN(const auto policy,
                         MakePolicy(kind->name, task, 1,
                                    {.parameters = {{"sample_init_population", 32},
                                                    {"evolutionary_search_population", 32}},
                                     .models = models}));
    ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(1));
    EXPECT_EQ(candidates.size(), 1u) << kind->name;
  }
}

TEST(Policies, ModelsThatAPolicyNeedsAreAskedFor) {
  const Task task = MakeTask();
  for (const PolicyKind* kind : Policies()) {
    const bool needs_one = !kind->learned_model.empty() || kind->uses_analytic_model;
    EXPECT_EQ(MakePolicy(kind->name, task, 1).ok(), !needs_one) << kind->name;
    if (kind->learned_model.empty()) continue;
    EXPECT_THAT(costmodel::CostModelNames(), testing::Contains(kind->learned_model));
  }
}

TEST(Policies, TheListOfTheDocsIsTheTable) {
  std::ifstream file("docs/search.md");  // tests run in the root of the runfiles
  std::stringstream doc;
  doc << file.rdbuf();
  std::string table;
  for (const PolicyKind* kind : Policies())
    table += fmt::format("| `{}` | {} |\n", kind->name, kind->what);
  EXPECT_THAT(doc.str(), HasSubstr("| policy | what it does |\n| --- | --- |\n" + table + "\n"));
}

TEST(Policies, UnknownNamesAreRefused) {
  EXPECT_THAT(
      FindPolicy("sketch.randon"),
      StatusIs(StatusCode::kInvalidArgument, AllOf(HasSubstr("unknown policy 'sketch.randon'"),
                                                   HasSubstr("expected one of sketch.xgb, "),
                                                   HasSubstr("did you mean sketch.random?"))));
  EXPECT_FALSE(MakeModels("oracle", 1).ok());
  EXPECT_THAT(
      MakePolicy("sketch.random", MakeTask(), 1, {.parameters = {{"wings", 2}}}),
      StatusIs(StatusCode::kInvalidArgument, HasSubstr("unknown search parameter 'wings'")));
}

}  // namespace
}  // namespace kiln::search
