#include "search/choice/config_context.h"

#include <algorithm>
#include <vector>

#include "store/distill.h"

namespace kiln::search {
namespace {

// Models and keys are names of the same form. This prefix tells them apart.
std::string OfModel(std::string_view target) {
  const std::string model = store::TargetModel(target);
  return model.empty() ? "" : "model " + model;
}

std::string OfKey(const std::string& key) { return "key " + key; }

// Names a record's model first, then its keys.
std::vector<std::string> NamesOf(std::string_view target) {
  std::vector<std::string> names;
  if (const std::string model = OfModel(target); !model.empty()) names.push_back(model);
  for (const std::string& key : store::TargetKeys(target)) names.push_back(OfKey(key));
  return names;
}

store::AutotvmRecord RecordOf(const ConfigQuestion& question) {
  store::AutotvmRecord record;
  record.task = question.task;
  record.args = question.args;
  record.kwargs = question.kwargs;
  return record;
}

}  // namespace

std::optional<store::AutotvmRecord> ConfigContext::Updated(const std::string& key,
                                                           const ConfigQuestion& question) {
  std::lock_guard lock(mutex_);
  const auto at = updated_.find({key, store::AutotvmWorkload(RecordOf(question))});
  return at == updated_.end() ? std::nullopt : std::optional(at->second);
}

StatusOr<std::optional<store::AutotvmRecord>> ConfigContext::Query(const ConfigQuestion& question) {
  for (const std::string& name : NamesOf(question.target)) {
    std::optional<store::AutotvmRecord> found = Updated(name, question);
    if (!found.has_value()) {
      KILN_ASSIGN_OR_RETURN(found, Find(name, question));
    }
    if (found.has_value()) return found;
  }
  if (outer_ == nullptr) return std::nullopt;
  return outer_->Query(question);
}

void ConfigContext::Update(const store::AutotvmRecord& record) {
  std::lock_guard lock(mutex_);
  for (const std::string& name : NamesOf(record.target))
    updated_[{name, store::AutotvmWorkload(record)}] = record;
}

StatusOr<std::optional<store::AutotvmRecord>> ConfigHistory::Find(const std::string& key,
                                                                  const ConfigQuestion& question) {
  std::optional<store::AutotvmRecord> best;
  const std::string workload = store::AutotvmWorkload(RecordOf(question));
  KILN_RETURN_IF_ERROR(
      store_.ForEachAutotvmRecord({.task = question.task}, [&](const store::AutotvmRecord& record) {
        if (record.error != store::kNoError || store::AutotvmWorkload(record) != workload)
          return OkStatus();
        const std::vector<std::string> names = NamesOf(record.target);
        if (std::find(names.begin(), names.end(), key) == names.end()) return OkStatus();
        if (!best.has_value() || store::MeanCost(record) < store::MeanCost(*best)) best = record;
        return OkStatus();
      }));
  return best;
}

}  // namespace kiln::search
