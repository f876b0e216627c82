#include "search/choice/choice.h"

#include <fmt/format.h>

namespace kiln::search {

Choice ChoiceOf(const store::Record& record) {
  return {.source = ChoiceSource::kRecord,
          .steps = record.steps,
          .record = record.id == 0 ? fmt::format("{}/{}", record.job_id, record.trial)
                                   : fmt::format("{}", record.id),
          .cost_s = store::Cost(record),
          .hardware = HardwareParamsOf(record.hardware),
          .device = record.device,
          .measured_as = record.measured_as};
}

}  // namespace kiln::search
