// The text of a DAG whose MD5 names the workload. One line per operator, without shapes and types
// of inputs, and with calls and padding reduced to the name of the function, so that old logs of
// the same computation are found again (docs/text-form.md has the form for people). Not meant to be
// parsed.
#pragma once

#include <string>

#include "compiler/dag/dag.h"

namespace kiln::dag {

std::string HashText(const Dag& dag);

}  // namespace kiln::dag
