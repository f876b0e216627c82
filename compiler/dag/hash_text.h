// The text of a DAG whose MD5 names the workload. It has one line per operator, without shapes and
// types of inputs, and with calls and padding reduced to the name of the function, so that old logs
// of the same computation are found again. It is not meant to be parsed; docs/text-form.md has the
// form for people.
#pragma once

#include <span>
#include <string>

#include "compiler/dag/dag.h"

namespace kiln::dag {

std::string HashText(const Dag& dag);

// The form of an operator in a hash text, if it differs from the operator's own names.
struct OpForm {
  // "": the operator's own name.
  std::string name = {};
  // Prefix of its spatial axes, which are numbered from 0. "": the axes' own names.
  std::string axes = {};
  // Text instead of its body. "": its own body.
  std::string body = {};
};
// `forms` has one entry for each operator.
std::string HashText(const Dag& dag, std::span<const OpForm> forms);

// Returns the text that was hashed before 2021 (TVM v0.8.dev0,
// python/tvm/auto_scheduler/compute_dag.py, hash_key): for each operator the body as it was printed
// then, the shape and the type. Returns "" if the old form of an operator is not known.
std::string BodiesText(const Dag& dag, std::span<const OpForm> forms);

}  // namespace kiln::dag
