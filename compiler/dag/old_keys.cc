#include "compiler/dag/old_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/arrays/packed_key.h"
#include "base/hash/digest.h"
#include "compiler/dag/hash_text.h"
#include "compiler/dag/key_forms.h"
#include "compiler/dag/packed_inputs.h"
#include "compiler/dag/workload_key.h"

namespace kiln::dag {
namespace {

using Forms = std::vector<OpForm>;

constexpr std::string_view kPlaceholder = "placeholder";

bool HasOp(const Dag& dag, std::string_view name) {
  return std::ranges::any_of(dag.nodes(),
                             [&](const OpNode& node) { return node.op->name() == name; });
}

// Returns the old name of an operator. "": the name has not changed.
std::string OldNameOf(const Dag& dag, std::string_view name) {
  if (name == "conv2d_nhwc") return "Conv2dOutput";
  if (name == "pad_temp" && HasOp(dag, "conv2d_nhwc")) return "PaddedInput";
  if (name == "conv2d_nchw") return "compute";
  if (name == "T_matmul_NT") return "T_dense";
  return "";
}

Forms WithPlaceholders(const Dag& dag, Forms forms) {
  for (int i = 0; i < dag.size(); ++i) {
    if (dag.op(i).is_placeholder()) forms[static_cast<size_t>(i)].name = kPlaceholder;
  }
  return forms;
}

Forms WithOldNames(const Dag& dag, Forms forms) {
  for (int i = 0; i < dag.size(); ++i) {
    std::string name = OldNameOf(dag, dag.op(i).name());
    if (!name.empty()) forms[static_cast<size_t>(i)] = {.name = std::move(name)};
  }
  return forms;
}

// Returns the key with a list for each shape if `nested`, else with all shapes in one list.
std::string KeyOf(const std::string& hash, const Dag& dag, bool nested) {
  std::string key = fmt::format("[\"{}\"", hash);
  for (const Tensor argument : dag.arguments()) {
    const std::string shape = fmt::format("{}", fmt::join(dag.shape(argument), ", "));
    key += nested ? fmt::format(", [{}]", shape) : fmt::format(", {}", shape);
  }
  return key + "]";
}

}  // namespace

std::vector<std::string> OldWorkloadKeys(const Dag& dag) {
  const std::vector<std::string> known = WorkloadKeys(dag);
  const bool is_packed = !PackedInputs(dag).empty();
  std::vector<std::string> keys;
  const auto add = [&](std::string key) {
    if (is_packed) key = PackedKey(key);
    if (std::ranges::find(known, key) != known.end()) return;
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
  };
  std::vector<Forms> all = OtherKeyForms(dag);
  all.insert(all.begin(), Forms(static_cast<size_t>(dag.size())));
  for (const Forms& forms : all) {
    const Forms today = WithPlaceholders(dag, forms);
    for (const Forms& then : {WithOldNames(dag, today), today}) {
      const std::string hash = Md5Hex(HashText(dag, then));
      for (const bool nested : {false, true}) add(KeyOf(hash, dag, nested));
      const std::string bodies = BodiesText(dag, then);
      if (!bodies.empty()) add(fmt::format("[\"{}\"]", Md5Hex(bodies)));
    }
  }
  return keys;
}

}  // namespace kiln::dag
