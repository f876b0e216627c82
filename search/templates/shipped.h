// The templates that Kiln ships, for operators of its library: texts, as users write them.
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
  std::string_view what;  // for people, one line
  std::string_view op;    // of the operator library that it is for
  std::string_view axes;  // of its sum, as the library names them: "nn ff yy xx"
  std::string_view text;
};

// A template may be there twice: for GPUs and for CPUs.
std::span<const ShippedTemplate> ShippedTemplates();

// NotFound: there is none of this name for such a target; names those that are near.
StatusOr<const ShippedTemplate*> FindShippedTemplate(std::string_view name, bool gpu);

// The first one for computations like this on such a target: their only reduction has the axes that
// the template's operator has. NotFound: there is none.
StatusOr<TemplatePtr> ShippedTemplateFor(const dag::DagPtr& dag, bool gpu);

// The template that was given, if it can schedule the computation on such a target (InvalidArgument:
// why it cannot); of none (null) that which is shipped.
StatusOr<TemplatePtr> TemplateFor(TemplatePtr given, const dag::DagPtr& dag, bool gpu);

}  // namespace kiln::search
