#include "scheduler/pages/json.h"

#include "scheduler/values/messages.h"

namespace kiln::scheduler {

std::string Bounded(std::string_view text) { return CutText(text, kMostTextBytes); }

}  // namespace kiln::scheduler
