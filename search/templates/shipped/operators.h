// The shipped templates by the operator that they are for. Each template is a row beside its text.
#pragma once

#include <span>

#include "search/templates/shipped.h"

namespace kiln::search {

std::span<const ShippedTemplate> Conv2dTemplates();
std::span<const ShippedTemplate> DepthwiseTemplates();
// Templates of dense and batch_matmul; those of dense also schedule matmul.
std::span<const ShippedTemplate> MatmulTemplates();

}  // namespace kiln::search
