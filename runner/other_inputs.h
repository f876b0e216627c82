// Gives a program the other content of its inputs (input_values.h), at the same addresses.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runner/checked_program.h"

namespace kiln::runner {

// Lets the program find the other content in its inputs, from Show until Hide. The destructor
// unloads the program and puts the first content back, because other programs use the buffers in
// the next trial. After a failure the buffers leave the cache. Errors are those of the device.
class OtherInputs {
 public:
  // `bench` and `checked` outlive the object.
  OtherInputs(const Bench& bench, CheckedProgram& checked) : bench_(bench), checked_(checked) {}
  OtherInputs(const OtherInputs&) = delete;
  OtherInputs& operator=(const OtherInputs&) = delete;
  ~OtherInputs();

  Status Show() { return Note(ShowAll()); }
  Status Hide() { return Note(HideAll()); }

 private:
  // After a failure it is unknown which content the buffers have.
  Status Note(Status status);
  Status ShowAll();
  Status HideAll();
  Status FillInPlace(ProgramInput& input);

  const Bench& bench_;
  CheckedProgram& checked_;
  std::vector<std::pair<ProgramInput*, std::shared_ptr<CachedBuffer>>> shown_;
  // Inputs whose only buffer was filled anew.
  std::vector<ProgramInput*> filled_;
  bool is_mixed_ = false;
};

}  // namespace kiln::runner
