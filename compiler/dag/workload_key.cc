#include "compiler/dag/workload_key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/arrays/packed_key.h"
#include "base/hash/digest.h"
#include "compiler/dag/hash_text.h"
#include "compiler/dag/key_forms.h"
#include "compiler/dag/packed_inputs.h"

namespace kiln::dag {
namespace {

using nlohmann::json;

std::string KeyOf(const std::string& hash, const Dag& dag) {
  std::string key = fmt::format("[\"{}\"", hash);
  for (Tensor argument : dag.arguments())
    key += fmt::format(", [{}]", fmt::join(dag.shape(argument), ", "));
  key += "]";
  return PackedInputs(dag).empty() ? key : PackedKey(key);
}

}  // namespace

std::string DagHash(const Dag& dag) { return Md5Hex(HashText(dag)); }

std::string WorkloadKey(const Dag& dag) { return KeyOf(DagHash(dag), dag); }

std::vector<std::string> WorkloadKeys(const Dag& dag) {
  std::vector<std::string> keys = {WorkloadKey(dag)};
  for (const std::vector<OpForm>& forms : OtherKeyForms(dag)) {
    std::string key = KeyOf(Md5Hex(HashText(dag, forms)), dag);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(std::move(key));
  }
  return keys;
}

std::string NormalizedKey(std::string_view key) {
  // Text that is no JSON could become the key of another computation without its spaces.
  if (!key.starts_with('[') || !json::accept(key.begin(), key.end())) return std::string(key);
  std::string normalized;
  bool quoted = false;
  for (size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) continue;
    normalized += c;
    if (quoted && c == '\\' && i + 1 < key.size()) normalized += key[++i];
    if (!quoted && c == ',') normalized += ' ';
  }
  return normalized;
}

}  // namespace kiln::dag
