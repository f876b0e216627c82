// Definitions shared by the printer and the parser of DAG text.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/dag/dag.h"

namespace kiln::dag {

// Returns the suffix that names output k of an operator with several outputs: ".index" and ".value"
// for argmax and argmin, otherwise ".v0", ".v1", ...
std::string PartName(const Operator& op, int output);

// Attributes that are lists of names.
struct NameListAttribute {
  std::string_view name;
  std::vector<std::string> Attrs::* field;
};
inline constexpr std::array<NameListAttribute, 5> kNameListAttributes = {{
    {"simplify_const_tensor_indices", &Attrs::simplify_const_tensor_indices},
    {"always_unroll_inner", &Attrs::always_unroll_inner},
    {"no_split_at_inner", &Attrs::no_split_at_inner},
    {"layout_free_placeholders", &Attrs::layout_free_placeholders},
    {"packed_placeholders", &Attrs::packed_placeholders},
}};

// Attributes that are one piece of text.
struct TextAttribute {
  std::string_view name;
  std::string Attrs::* field;
};
inline constexpr std::array<TextAttribute, 2> kTextAttributes = {{
    {"task_scheduler_tag", &Attrs::task_scheduler_tag},
    {"hash_body", &Attrs::hash_body},
}};

// Returns the name without a '1 behind it.
std::string_view BaseName(std::string_view display_name);

}  // namespace kiln::dag
