// The text of a DAG whose MD5 names the workload. One line per operator, without shapes and types
// of inputs, and with calls and padding reduced to the name of the function, so that old logs of
// the same computation are found again (docs/text-form.md has the form for people). Not meant to be
// parsed.
#pragma once

#include <span>
#include <string>

#include "compiler/dag/dag.h"

namespace kiln::dag {

std::string HashText(const Dag& dag);

// How an operator is written in a hash text, where that differs from its own names.
struct OpForm {
  std::string name = {};  // "": its own
  std::string axes = {};  // what its spatial axes begin with, numbered from 0; "": their own names
  std::string body = {};  // instead of its body; "": its own
};
// `forms`: one for each operator.
std::string HashText(const Dag& dag, std::span<const OpForm> forms);

// What was hashed before 2021 (TVM v0.8.dev0, python/tvm/auto_scheduler/compute_dag.py, hash_key):
// of each operator the body as it was printed then, the shape and the type. "": how one of the
// operators was printed is not known.
std::string BodiesText(const Dag& dag, std::span<const OpForm> forms);

}  // namespace kiln::dag
