// Says for which computation a key of imported records stands. A key is a label: one such as
// ["my_matmul", 127, 96, 80] tells nothing of what is computed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "store/store.h"

namespace kiln::store {

// Returns OK if the steps may belong to the computation, otherwise an error that says why they
// cannot. The store knows both as texts only.
using FitCheck = std::function<Status(std::string_view dag, std::string_view steps_json)>;

struct BindResult {
  // Records that fit and belong to the computation now.
  int64_t bound = 0;
  // Records that do not fit and belong to no computation.
  int64_t unfit = 0;
  // "record 12: ...": why the first of the unfit records does not fit.
  std::string first_unfit = {};
};

// Binds the key (Store::BindKey) and those of its imported records that fit, whatever they were
// bound to before. Records that are imported later are bound when they are imported (import_log.h).
// Returns FailedPrecondition and changes nothing if there are records and none fits. Cost: a check
// for each record of the key.
StatusOr<BindResult> BindImported(Store& store, const Computation& computation,
                                  const FitCheck& fits);

}  // namespace kiln::store
