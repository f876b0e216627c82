// A template: a schedule that a person wrote, with knobs that a search turns (autotvm; Chen et al.,
// Learning to Optimize Tensor Programs, NeurIPS 2018). Of a computation it makes a configuration
// space, and of a point of that space a schedule.
//
// Immutable; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/schedule/state.h"
#include "search/templates/config_space.h"
#include "search/templates/template_text.h"

namespace kiln::search {

class Template {
 public:
  virtual ~Template() = default;
  virtual std::string_view name() const = 0;
  // Does it bind loops to blocks and threads?
  virtual bool for_gpu() const = 0;

  // InvalidArgument: why this computation is not one that the template can schedule.
  virtual StatusOr<ConfigSpace> Space(const dag::DagPtr& dag) const = 0;

  // The schedule of a point of Space(dag). An error of `config`, which says where and why: a
  // `require` of the template does not hold, or a step refuses. Whether a device can run the
  // schedule is not known here. Cost: some tens of microseconds.
  virtual StatusOr<schedule::State> Instantiate(const dag::DagPtr& dag,
                                                const Config& config) const = 0;
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
  StatusOr<schedule::State> Instantiate(const dag::DagPtr& dag,
                                        const Config& config) const override;

 private:
  const TemplateText text_;
};

// Null of the empty text.
StatusOr<TemplatePtr> TemplateOfText(std::string_view text);

}  // namespace kiln::search
