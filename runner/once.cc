#include "runner/once.h"

#include "base/message_file.h"

namespace kiln::runner {

Status MeasureOnce(const std::string& path, DeviceSlot& slot) {
  v1::MeasureRequest request;
  KILN_RETURN_IF_ERROR(ReadMessageFile(path, request));
  KILN_ASSIGN_OR_RETURN(const v1::MeasureReply reply, slot.Measure(request, [] { return false; }));
  PrintMessage(reply);
  return OkStatus();
}

}  // namespace kiln::runner
