// Answers questions about the schedules of computations. `kiln states` reads the questions from
// another program, which asks thousands of them: Python's kiln.auto_scheduler and kiln.autotvm.
//
// A question is a JSON object; "do" names it, and "task" is the number of a computation that was
// opened before. States are lists of steps (docs/steps.md).
//
//   {"do": "open", "dag": TEXT, "target": "llvm"} -> task, target, hardware
//   {"do": "dag", "task"} -> text, as TVM prints it
//   {"do": "state", "task", "steps", "bounds": true} -> the state (state_json.h); with bounds all
//     extents are known
//   {"do": "print", "task", "steps", "form": "tvm"} -> text, in a form of kiln show, or with
//     "primitives" only the lines of a schedule in TVM's Python
//   {"do": "program", "task", "steps"} -> why_not: "" if the state has a program
//   {"do": "packed", "task", "steps"} -> dag: the computation whose weights are packed; layouts:
//     names and dimensions of these as TVM writes them, "4j32k16j"
//   {"do": "sample", "task", "count", "seed", "parameters"} -> states
//   {"do": "evolve", "task", "states", "count", "seed", "parameters", "model"} -> states, scores
//   {"do": "predict", "task", "states", "model"} -> scores, of stages as well; null for a state
//     that has no program
//   {"do": "features", "task", "states"} -> rows of each state, names
//   {"do": "space", "task", "template": TEXT} -> space, text
//   {"do": "config", "task", "template": TEXT, "index"} -> index, entity, steps
//   {"do": "index", "task", "template": TEXT, "entity"} -> index of a point by its values
//   {"do": "compatible", "key", "other"} -> distance of two workload keys, or null
//
// "model" is "analytic", "random", or the path of a file of kiln model train.
#pragma once

#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"
#include "client/cli/states/population.h"
#include "search/space/task.h"
#include "search/templates/template.h"

namespace kiln::client {

// One thread at a time.
class StateAnswers {
 public:
  // Returns one line without its end: the answer, or {"error": SENTENCE}. Never fails.
  std::string Answer(std::string_view question);

 private:
  using Json = nlohmann::json;

  StatusOr<Json> AnswerTo(const Json& question);
  StatusOr<Json> Open(const Json& question);
  StatusOr<Json> Show(const Json& question, const search::Task& task) const;
  StatusOr<Json> Program(const Json& question, const search::Task& task) const;
  StatusOr<Json> Print(const Json& question, const search::Task& task) const;
  StatusOr<Json> Space(const Json& question, const search::Task& task);
  StatusOr<const search::Task*> TaskOf(const Json& question) const;
  StatusOr<search::TemplatePtr> TemplateOf(const Json& question, const search::Task& task);

  // Tasks keep their places, because spaces and states refer to them.
  std::deque<search::Task> tasks_;
  std::map<std::string, size_t> numbers_;  // by text of the computation and target
  // The template that was asked for last.
  std::string template_text_;
  search::TemplatePtr template_;
  LastModel last_model_;
};

}  // namespace kiln::client
