// Contexts of autotvm's templates: who is asked which configuration a template gets for a workload,
// one within the other (TVM v0.14, python/tvm/autotvm/task/dispatcher.py). A configuration says
// nothing without its template, so these stand beside those of schedules (context.h).
//
// Order of a query, as autotvm's: what Update says for the target's model; the best record for the
// model; then for each key of the target (`-keys=`, then those of its kind) what Update says, and the
// best record; then the outer context.
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
  std::string task;           // the template: "conv2d_nchw.cuda"
  std::string args;           // JSON, as in a line of a log
  std::string kwargs = "{}";  // likewise
};

class ConfigContext {
 public:
  explicit ConfigContext(std::shared_ptr<ConfigContext> outer = nullptr)
      : outer_(std::move(outer)) {}
  virtual ~ConfigContext() = default;
  ConfigContext(const ConfigContext&) = delete;
  ConfigContext& operator=(const ConfigContext&) = delete;

  // None: nobody knows; a template sets its knobs by itself then.
  StatusOr<std::optional<store::AutotvmRecord>> Query(const ConfigQuestion& question);

  // From now on the record's configuration is this context's for its workload, on targets of its
  // model and of each of its keys.
  void Update(const store::AutotvmRecord& record);

 protected:
  using Records = std::map<std::pair<std::string, std::string>, store::AutotvmRecord>;

  // By model or key of a target, and workload: the best record that this context knows of itself.
  virtual StatusOr<std::optional<store::AutotvmRecord>> Find(const std::string& key,
                                                             const ConfigQuestion& question) = 0;

 private:
  std::optional<store::AutotvmRecord> Updated(const std::string& key,
                                              const ConfigQuestion& question);

  const std::shared_ptr<ConfigContext> outer_;
  std::mutex mutex_;
  Records updated_;
};

// The best record of a store, by its mean cost. Each query reads the template's records, one at a
// time.
class ConfigHistory final : public ConfigContext {
 public:
  // The store outlives this.
  explicit ConfigHistory(store::Store& store, std::shared_ptr<ConfigContext> outer = nullptr)
      : ConfigContext(std::move(outer)), store_(store) {}

 protected:
  StatusOr<std::optional<store::AutotvmRecord>> Find(const std::string& key,
                                                     const ConfigQuestion& question) override;

 private:
  store::Store& store_;
};

// Nothing but what Update says: fixed configurations.
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
