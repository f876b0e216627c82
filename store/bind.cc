#include "store/bind.h"

#include <vector>

namespace kiln::store {

StatusOr<BindResult> BindImported(Store& store, const Computation& computation,
                                  const FitCheck& fits) {
  BindResult result;
  std::vector<int64_t> fitting;
  const RecordFilter of_key = {.workload = {.keys = {computation.key}}, .include_errors = true};
  KILN_RETURN_IF_ERROR(store.ForEachRecord(of_key, [&](const Record& record) {
    if (record.workload_key != computation.key || !IsImported(record)) return OkStatus();
    const Status fit = fits(computation.dag, record.steps);
    if (fit.ok()) {
      fitting.push_back(record.id);
    } else if (++result.unfit == 1) {
      result.first_unfit = fmt::format("record {}: {}", record.id, Message(fit));
    }
    return OkStatus();
  }));
  if (fitting.empty() && result.unfit > 0) {
    return FailedPrecondition("{} of {} fits this computation; {}",
                              result.unfit == 1
                                  ? "not even the one record"
                                  : fmt::format("none of the {} records", result.unfit),
                              computation.key, result.first_unfit);
  }
  KILN_RETURN_IF_ERROR(store.BindKey(computation));
  KILN_ASSIGN_OR_RETURN(result.bound, store.BindRecords(computation, fitting));
  return result;
}

}  // namespace kiln::store
