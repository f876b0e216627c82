// Contexts of autotvm's templates: they answer which configuration a template gets for a workload.
// Contexts nest (TVM v0.14, python/tvm/autotvm/task/dispatcher.py). A configuration has no meaning
// without its template, so these contexts are separate from those of schedules (context.h).
//
// A query looks in the same order as autotvm: first the configuration that Update has set for the
// target's model, then the best record for the model; then, for each key of the target (`-keys=`,
// then the keys of its kind), the configuration that Update has set, and the best record; last the
// outer context.
//
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "store/autotvm_record.h"
#include "store/store.h"

namespace kiln::search {

struct ConfigQuestion {
  std::string target;
  std::string task;           // names the template: "conv2d_nchw.cuda"
  std::string args;           // JSON, as in a line of a log
  std::string kwargs = "{}";  // JSON, as in a line of a log
};

class ConfigContext {
 public:
  explicit ConfigContext(std::shared_ptr<ConfigContext> outer = nullptr)
      : outer_(std::move(outer)) {}
  virtual ~ConfigContext() = default;
  ConfigContext(const ConfigContext&) = delete;
  ConfigContext& operator=(const ConfigContext&) = delete;

  // Returns nothing if no context knows a configuration. The template then sets its knobs by
  // itself.
  StatusOr<std::optional<store::AutotvmRecord>> Query(const ConfigQuestion& question);

  // Makes the record's configuration this context's answer for its workload, on targets of the same
  // model and of each of the same keys.
  void Update(const store::AutotvmRecord& record);

 protected:
  using Records = std::map<std::pair<std::string, std::string>, store::AutotvmRecord>;

  // Returns the best record that this context itself knows for a model or key of a target, and a
  // workload.
  virtual StatusOr<std::optional<store::AutotvmRecord>> Find(const std::string& key,
                                                             const ConfigQuestion& question) = 0;

 private:
  std::optional<store::AutotvmRecord> Updated(const std::string& key,
                                              const ConfigQuestion& question);

  const std::shared_ptr<ConfigContext> outer_;
  std::mutex mutex_;
  Records updated_;
};

// Answers with the best record of a store, by its mean cost. Each query reads the template's
// records, one at a time.
class ConfigHistory final : public ConfigContext {
 public:
  // The store outlives this object.
  explicit ConfigHistory(store::Store& store, std::shared_ptr<ConfigContext> outer = nullptr)
      : ConfigContext(std::move(outer)), store_(store) {}

 protected:
  StatusOr<std::optional<store::AutotvmRecord>> Find(const std::string& key,
                                                     const ConfigQuestion& question) override;

 private:
  store::Store& store_;
};

// Answers only with configurations that Update has set.
class FixedConfigs final : public ConfigContext {
 public:
  using ConfigContext::ConfigContext;

 protected:
  StatusOr<std::optional<store::AutotvmRecord>> Find(const std::string&,
                                                     const ConfigQuestion&) override {
    return std::nullopt;
  }
};

}  // namespace kiln::search
