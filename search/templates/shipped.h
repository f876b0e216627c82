// The templates that Kiln ships, for operators of its library. The templates are texts as users
// write them.
//
// Immutable; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "search/templates/template.h"

namespace kiln::search {

struct ShippedTemplate {
  std::string_view name;
  bool for_gpu;
  std::string_view what;  // one line for people
  std::string_view op;    // the operator of the library that the template is for
  std::string_view axes;  // axes of its sum, as the library names them: "nn ff yy xx"
  std::string_view text;
};

// A name may appear twice: for GPUs and for CPUs.
std::span<const ShippedTemplate> ShippedTemplates();

// NotFound if there is no template of this name for such a target; the message has similar names.
StatusOr<const ShippedTemplate*> FindShippedTemplate(std::string_view name, bool gpu);

// Returns the first template for such a target that can schedule the computation. The computation's
// only reduction must have the axes of the template's operator. NotFound if there is none.
StatusOr<TemplatePtr> ShippedTemplateFor(const dag::DagPtr& dag, bool gpu);

// Returns `given` if it can schedule the computation on such a target; InvalidArgument says why it
// cannot. If `given` is null, returns the shipped template.
StatusOr<TemplatePtr> TemplateFor(TemplatePtr given, const dag::DagPtr& dag, bool gpu);

}  // namespace kiln::search
