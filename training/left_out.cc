#include "training/left_out.h"

#include "compiler/handwritten/kernel_point.h"
#include "store/plausible_cost.h"

namespace kiln::training {

std::string_view WhyLeftOut(const store::Record& record) {
  if (record.error == store::kUnknownError) return kWorkersFailed;
  if (handwritten::IsKernelPoint(record.steps)) return kHandWritten;
  if (store::HasRewrittenLayouts(record)) return kRewrittenLayouts;
  if (!record.mark.empty()) return kMarked;
  return "";
}

Status CheckMeasuredCosts(const store::Record& record, const search::Task& task) {
  if (!task.target.kind->runs_programs) return OkStatus();
  return store::CheckPlausible(record, task.dag->flop_count());
}

}  // namespace kiln::training
