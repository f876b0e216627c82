// A template: a program that a person wrote, with knobs that a search turns. For a computation it
// makes a configuration space. For a point of that space it makes a schedule (autotvm; Chen et al.,
// Learning to Optimize Tensor Programs, NeurIPS 2018), or a kernel with values for its parameters
// (kernel_template.h).
//
// Immutable; any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/handwritten/specialization.h"
#include "compiler/schedule/state.h"
#include "search/space/round_report.h"
#include "search/space/task.h"
#include "search/templates/config_space.h"
#include "search/templates/template_text.h"

namespace kiln::search {

// The program of a point of a space: a schedule or a kernel.
struct Instance {
  Instance(schedule::State s) : state(std::move(s)) {}  // NOLINT: it is one
  Instance(handwritten::KernelPoint k, handwritten::Specialization s)
      : kernel(std::move(k)), specialization(std::move(s)) {}

  std::optional<schedule::State> state = {};
  std::optional<handwritten::KernelPoint> kernel = {};
  std::optional<handwritten::Specialization> specialization = {};  // set with `kernel`

  // Returns the hash of a candidate with this program.
  uint64_t Hash() const;
};

class Template {
 public:
  virtual ~Template() = default;
  virtual std::string_view name() const = 0;
  // Tells whether the template's programs run in blocks of threads.
  virtual bool for_gpu() const = 0;

  // InvalidArgument says why the template is not for this computation.
  virtual StatusOr<ConfigSpace> Space(const dag::DagPtr& dag) const = 0;

  // Makes the program of a point of Space(dag). Fails if a `require` of the template does not hold,
  // a step refuses, or a launch has no meaning; the error says where and why. Does not check
  // whether a device can run the program. Cost: some tens of microseconds.
  virtual StatusOr<Instance> Instantiate(const dag::DagPtr& dag, const Config& config) const = 0;

  // Checks whether the task's device can run an instance, as far as that is known before it is
  // built. If not, returns the reason, and sets `drop` to its kind. Schedules are lowered for the
  // check.
  virtual Status CheckRuns(const Instance& instance, const Task& task, Drop& drop) const;

  // Names the kind for people: "template", "kernel" or "list".
  virtual std::string_view kind() const { return "template"; }

  // Tells whether a search may measure schedules that are no points of the template's space, such
  // as heuristic ones. A list of schedules is all that its author wants measured.
  virtual bool admits_others() const { return true; }
};
using TemplatePtr = std::shared_ptr<const Template>;

// A template whose schedule is a text.
class TextTemplate final : public Template {
 public:
  explicit TextTemplate(TemplateText text) : text_(std::move(text)) {}
  // Returns errors of ParseTemplate.
  static StatusOr<TemplatePtr> Parse(std::string_view text);

  std::string_view name() const override { return text_.name; }
  bool for_gpu() const override { return text_.for_gpu; }
  const TemplateText& text() const { return text_; }

  StatusOr<ConfigSpace> Space(const dag::DagPtr& dag) const override;
  StatusOr<Instance> Instantiate(const dag::DagPtr& dag, const Config& config) const override;

 private:
  const TemplateText text_;
};

// Returns null for the empty text.
StatusOr<TemplatePtr> TemplateOfText(std::string_view text);

}  // namespace kiln::search
