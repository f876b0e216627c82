#include "compiler/dag/workload_key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/arrays/packed_key.h"
#include "base/hash/digest.h"
#include "compiler/dag/hash_text.h"
#include "compiler/dag/key_forms.h"
#include "compiler/dag/packed_inputs.h"

namespace kiln::dag {
namespace {

using nlohmann::json;

// Real keys have a few levels. Printing a value takes stack for each level.
constexpr int kDeepest = 64;

void Flatten(const json& value, int depth, std::vector<KeyItem>& items) {
  if (value.is_array() && depth < 8) {
    for (const json& item : value) Flatten(item, depth + 1, items);
  } else if (value.is_number_integer()) {
    items.emplace_back(value.get<int64_t>());
  } else if (value.is_string()) {
    items.emplace_back(value.get<std::string>());
  } else {
    items.emplace_back(value.dump(-1, ' ', false, json::error_handler_t::replace));
  }
}

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

DecodedKey DecodeWorkloadKey(std::string_view key) {
  int deepest = 0;
  const auto look = [&](int depth, json::parse_event_t, json&) {
    deepest = std::max(deepest, depth);
    return true;
  };
  const json parsed = json::parse(key.begin(), key.end(), look, /*allow_exceptions=*/false);
  if (deepest > kDeepest) return {std::string(key), {}};
  if (!parsed.is_array() || parsed.empty() || !parsed[0].is_string()) return {std::string(key), {}};
  DecodedKey result{parsed[0].get<std::string>(), {}};
  for (size_t i = 1; i < parsed.size(); ++i) Flatten(parsed[i], 0, result.items);
  return result;
}

double WorkloadDistance(const DecodedKey& target, const DecodedKey& candidate) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (target.name != candidate.name || target.items.size() != candidate.items.size()) return kFar;
  double distance = 1;
  for (size_t i = 0; i < target.items.size(); ++i) {
    const auto* t = std::get_if<int64_t>(&target.items[i]);
    const auto* c = std::get_if<int64_t>(&candidate.items[i]);
    if (target.items[i] == candidate.items[i]) continue;
    if (t == nullptr || c == nullptr || *t == 0 || *c == 0 || *c == -1 || *t % *c != 0) return kFar;
    distance *= static_cast<double>(*t / *c);
  }
  return distance;
}

}  // namespace kiln::dag
