// Reads the text of a template, which may be a list of schedules. A program that searches by itself
// has its schedules measured by such a list, under the policy template.grid.
//
//   schedules for cpu
//   [["SP", 2, 0, 512, [32], 1], ["AN", 2, 0, 3]]
//   []
//
// The first line says the kind of target, and each further line is a list of steps (docs/steps.md).
// Lines that begin with '#' and empty lines are left out. The only knob is the number of a
// schedule.
#include <algorithm>
#include <cctype>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/schedule/step.h"
#include "search/templates/template.h"

namespace kiln::search {
namespace {

constexpr std::string_view kWord = "schedules for ";
constexpr std::string_view kKnob = "schedule";

// Takes the next line off the text, without white space around it.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + 1));
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
  while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
  return line;
}

bool IsLeftOut(std::string_view line) { return line.empty() || line.front() == '#'; }

// Returns whether the text is meant as a list of schedules.
bool IsScheduleList(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (!IsLeftOut(line)) return line.starts_with(kWord);
  }
  return false;
}

class ListTemplate final : public Template {
 public:
  // InvalidArgument "line 3, column 1: ..." says what was found and what was expected.
  static StatusOr<TemplatePtr> Parse(std::string_view text);

  std::string_view name() const override { return "schedules"; }
  std::string_view kind() const override { return "list"; }
  bool admits_others() const override { return false; }
  bool for_gpu() const override { return for_gpu_; }

  StatusOr<ConfigSpace> Space(const dag::DagPtr& dag) const override;
  // Replays the schedule of the number.
  StatusOr<Instance> Instantiate(const dag::DagPtr& dag, const Config& config) const override;

 private:
  ListTemplate() = default;

  bool for_gpu_ = false;
  std::vector<std::vector<schedule::StepPtr>> schedules_;
};

StatusOr<TemplatePtr> ListTemplate::Parse(std::string_view text) {
  const std::shared_ptr<ListTemplate> list(new ListTemplate());
  bool has_head = false;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = TakeLine(text);
    if (IsLeftOut(line)) continue;
    if (!has_head) {
      has_head = true;
      const bool for_gpu = line == std::string(kWord) + "gpu";
      if (!for_gpu && line != std::string(kWord) + "cpu") {
        return InvalidArgument("line {}, column 1: expected '{}cpu' or '{}gpu', found '{}'", number,
                               kWord, kWord, line.substr(0, 60));
      }
      list->for_gpu_ = for_gpu;
      continue;
    }
    StatusOr<std::vector<schedule::StepPtr>> steps = schedule::ParseSteps(line);
    if (!steps.ok())
      return InvalidArgument("line {}, column 1: {}", number, Message(steps.status()));
    list->schedules_.push_back(*std::move(steps));
  }
  if (list->schedules_.empty())
    return InvalidArgument("the list has no schedules, expected a list of steps in each line");
  return TemplatePtr(list);
}

StatusOr<ConfigSpace> ListTemplate::Space(const dag::DagPtr&) const {
  std::vector<OptionEntity> numbers(schedules_.size());
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i].value.emplace<int64_t>(static_cast<int64_t>(i));
  ConfigSpace space;
  KILN_RETURN_IF_ERROR(space.Add(Knob::Option(std::string(kKnob), std::move(numbers))));
  return space;
}

StatusOr<Instance> ListTemplate::Instantiate(const dag::DagPtr& dag, const Config& config) const {
  KILN_ASSIGN_OR_RETURN(schedule::State state,
                        schedule::Replay(dag, schedules_[static_cast<size_t>(config.index)]));
  return Instance(std::move(state));
}

}  // namespace

StatusOr<TemplatePtr> TemplateOfText(std::string_view text) {
  if (text.empty()) return TemplatePtr();
  if (IsScheduleList(text)) return ListTemplate::Parse(text);
  return TextTemplate::Parse(text);
}

}  // namespace kiln::search
