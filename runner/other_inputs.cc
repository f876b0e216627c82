#include "runner/other_inputs.h"

namespace kiln::runner {

OtherInputs::~OtherInputs() {
  // The program's own process is gone, so nobody looks at its inputs.
  checked_.program.reset();
  if (Hide().ok() && !is_mixed_) return;
  for (const ProgramInput& input : checked_.inputs) ForgetInput(bench_, input);
}

Status OtherInputs::Note(Status status) {
  if (!status.ok()) is_mixed_ = true;
  return status;
}

Status OtherInputs::ShowAll() {
  for (ProgramInput& input : checked_.inputs) {
    StatusOr<std::shared_ptr<CachedBuffer>> other = input.other;
    if (input.other == nullptr) other = InputBuffer(bench_, input, Content::kOther);
    // If there is no memory for a second copy, the only copy gets the other values.
    if (other.status().code() == StatusCode::kResourceExhausted && !bench_.device.is_host()) {
      KILN_RETURN_IF_ERROR(FillInPlace(input));
      continue;
    }
    KILN_RETURN_IF_ERROR(other.status());
    KILN_RETURN_IF_ERROR(bench_.device.Substitute(*input.buffer->buffer, *(*other)->buffer));
    input.shown = (*other)->checksum;
    shown_.emplace_back(&input, *std::move(other));
  }
  return OkStatus();
}

Status OtherInputs::HideAll() {
  for (ProgramInput* const input : std::exchange(filled_, {})) {
    KILN_RETURN_IF_ERROR(bench_.device.Fill(*input->buffer->buffer,
                                            BytesOf(bench_.device, *input, Content::kTimed)));
    input->shown = input->buffer->checksum;
  }
  for (auto& [input, other] : std::exchange(shown_, {})) {
    KILN_RETURN_IF_ERROR(bench_.device.Restore(*input->buffer->buffer, *other->buffer));
    input->shown = input->buffer->checksum;
  }
  return OkStatus();
}

Status OtherInputs::FillInPlace(ProgramInput& input) {
  filled_.push_back(&input);
  KILN_RETURN_IF_ERROR(
      bench_.device.Fill(*input.buffer->buffer, BytesOf(bench_.device, input, Content::kOther)));
  KILN_ASSIGN_OR_RETURN(input.shown, bench_.device.Checksum(*input.buffer->buffer));
  return OkStatus();
}

}  // namespace kiln::runner
