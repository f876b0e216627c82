// A template: a program that a person wrote, with knobs that a search turns. Of a computation it
// makes a configuration space, and of a point of that space a schedule (autotvm; Chen et al.,
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

// What a point of a space stands for: one of these two.
struct Instance {
  Instance(schedule::State s) : state(std::move(s)) {}  // NOLINT: it is one
  Instance(handwritten::KernelPoint k, handwritten::Specialization s)
      : kernel(std::move(k)), specialization(std::move(s)) {}

  std::optional<schedule::State> state = {};
  std::optional<handwritten::KernelPoint> kernel = {};
  std::optional<handwritten::Specialization> specialization = {};  // of `kernel`

  // Of a candidate that is it.
  uint64_t Hash() const;
};

class Template {
 public:
  virtual ~Template() = default;
  virtual std::string_view name() const = 0;
  // Does it run in blocks of threads?
  virtual bool for_gpu() const = 0;

  // InvalidArgument: why this computation is not one that the template is for.
  virtual StatusOr<ConfigSpace> Space(const dag::DagPtr& dag) const = 0;

  // A point of Space(dag). An error of `config`, which says where and why: a `require` of the
  // template does not hold, a step refuses, or a launch has no meaning. Whether a device can run it
  // is not known here. Cost: some tens of microseconds.
  virtual StatusOr<Instance> Instantiate(const dag::DagPtr& dag, const Config& config) const = 0;

  // Why the task's device cannot run an instance, as far as that is known before it is built;
  // `drop` is then the kind of the reason. Schedules are lowered.
  virtual Status CheckRuns(const Instance& instance, const Task& task, Drop& drop) const;

  // For people: "template" or "kernel".
  virtual std::string_view kind() const { return "template"; }
};
using TemplatePtr = std::shared_ptr<const Template>;

// A template whose schedule is a text.
class TextTemplate final : public Template {
 public:
  explicit TextTemplate(TemplateText text) : text_(std::move(text)) {}
  // Errors of ParseTemplate.
  static StatusOr<TemplatePtr> Parse(std::string_view text);

  std::string_view name() const override { return text_.name; }
  bool for_gpu() const override { return text_.for_gpu; }
  const TemplateText& text() const { return text_; }

  StatusOr<ConfigSpace> Space(const dag::DagPtr& dag) const override;
  StatusOr<Instance> Instantiate(const dag::DagPtr& dag, const Config& config) const override;

 private:
  const TemplateText text_;
};

// Null of the empty text.
StatusOr<TemplatePtr> TemplateOfText(std::string_view text);

}  // namespace kiln::search
