// Tests lists of schedules as templates.
#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/schedule/step.h"
#include "search/templates/template.h"

namespace kiln::search {
namespace {

using testing::HasSubstr;

constexpr char kList[] =
    "# mine\n"
    "schedules for cpu\n"
    "[[\"AN\", 2, 1, 2]]\n"
    "\n"
    "[]\n"
    "[[\"AN\", 2, 9, 2]]";

TEST(ScheduleList, HasASpaceOfItsSchedules) {
  const dag::DagPtr dag = *dag::BuildOp("matmul", "32,32,32");
  ASSERT_OK_AND_ASSIGN(const TemplatePtr list, TemplateOfText(kList));
  EXPECT_EQ(list->kind(), "list");
  EXPECT_FALSE(list->admits_others());
  EXPECT_FALSE(list->for_gpu());
  ASSERT_OK_AND_ASSIGN(const ConfigSpace space, list->Space(dag));
  ASSERT_EQ(space.range(), 3);
  ASSERT_OK_AND_ASSIGN(const Instance first, list->Instantiate(dag, space.Get(0)));
  EXPECT_EQ(schedule::PrintSteps(first.state.value().steps()), R"([["AN", 2, 1, 2]])");
  EXPECT_OK(list->Instantiate(dag, space.Get(1)));
  EXPECT_THAT(std::string(Message(list->Instantiate(dag, space.Get(2)).status())),
              HasSubstr("loop 9 does not exist"));
}

TEST(ScheduleList, IsKnownByItsFirstLine) {
  ASSERT_OK_AND_ASSIGN(const TemplatePtr text,
                       TemplateOfText("template t for cpu\nstage C = output()"));
  EXPECT_EQ(text->kind(), "template");
  EXPECT_TRUE(text->admits_others());
  EXPECT_EQ(*TemplateOfText(""), nullptr);
  EXPECT_TRUE((*TemplateOfText("schedules for gpu\n[]"))->for_gpu());
}

TEST(ScheduleList, MistakesAreNamedByTheirPlace) {
  const auto error = [](std::string_view text) {
    return std::string(Message(TemplateOfText(text).status()));
  };
  EXPECT_THAT(error("schedules for tpu\n[]"), HasSubstr("line 1, column 1: expected"));
  EXPECT_THAT(error("schedules for cpu\n[]\n[[\"XX\"]]\n"), HasSubstr("line 3, column 1: "));
  EXPECT_THAT(error("schedules for cpu\n"), HasSubstr("no schedules"));
}

}  // namespace
}  // namespace kiln::search
