// A hand-written kernel as a template. Its parameters are knobs, whose values its text lists, and
// its restrictions are the filter of the space.
//
// Immutable; any thread.
#pragma once

#include "compiler/handwritten/kernel_text.h"
#include "search/templates/template.h"

namespace kiln::search {

class KernelTemplate final : public Template {
 public:
  explicit KernelTemplate(handwritten::KernelText text);
  // Returns errors of ParseKernelText.
  static StatusOr<TemplatePtr> Parse(std::string_view text);

  std::string_view name() const override { return text_.code.function; }
  std::string_view kind() const override { return "kernel"; }
  bool for_gpu() const override { return text_.language == handwritten::Language::kCuda; }
  const handwritten::KernelText& text() const { return text_; }

  StatusOr<ConfigSpace> Space(const dag::DagPtr& dag) const override;
  StatusOr<Instance> Instantiate(const dag::DagPtr& dag, const Config& config) const override;
  // Checks the threads and the dynamic shared memory of an instance that Instantiate made. The
  // compiler finds out about all other needs of the source.
  Status CheckRuns(const Instance& instance, const Task& task, Drop& drop) const override;

 private:
  const handwritten::KernelText text_;
  const std::string digest_;
};

}  // namespace kiln::search
