// Says for which computation a key of imported records stands: a key is a label, and one such as
// ["my_matmul", 127, 96, 80] tells nothing of what is computed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "store/store.h"

namespace kiln::store {

// Why steps cannot be of the computation; OK: they may be. The store knows both as texts only.
using FitCheck = std::function<Status(std::string_view dag, std::string_view steps_json)>;

struct BindResult {
  int64_t bound = 0;             // that fit, and are of the computation now
  int64_t unfit = 0;             // of none
  std::string first_unfit = {};  // "record 12: ...", why the first of these does not fit
};

// Binds the key (Store::BindKey) and those of its imported records that fit, whatever they were
// bound to before; what is imported later is bound as it comes (import_log.h). FailedPrecondition
// where there are records and none fits: nothing is changed then. Cost: a check for each record of
// the key.
StatusOr<BindResult> BindImported(Store& store, const Computation& computation,
                                  const FitCheck& fits);

}  // namespace kiln::store
