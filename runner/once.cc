#include "runner/once.h"

#include "base/file/message_file.h"
#include "rpc/artifact_digest.h"

namespace kiln::runner {

namespace {

// Fills in digests, because nobody computes them by hand.
void FillInDigests(v1::MeasureRequest& request) {
  v1::Artifact& artifact = *request.mutable_artifact();
  if (artifact.digest().empty()) artifact.set_digest(DigestOf(artifact));
  if (!request.has_reference() || !request.reference_digest().empty()) return;
  request.set_reference_digest(DigestOf(request.reference()));
}

}  // namespace

Status MeasureOnce(const std::string& path, DeviceSlot& slot) {
  v1::MeasureRequest request;
  KILN_RETURN_IF_ERROR(ReadMessageFile(path, request));
  FillInDigests(request);
  KILN_ASSIGN_OR_RETURN(const v1::MeasureReply reply, slot.Measure(request, [] { return false; }));
  PrintMessage(reply);
  return OkStatus();
}

}  // namespace kiln::runner
