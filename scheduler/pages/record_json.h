// Records as the pages show them, and the texts of their programs.
#pragma once

#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "scheduler/pages/json.h"
#include "store/record.h"

namespace kiln::scheduler {

// Most steps of a schedule that are listed.
inline constexpr size_t kMostSteps = 1'000;
// Longest text of a program.
inline constexpr size_t kMostProgramBytes = 1'000'000;

// Returns a row of a list of records.
Json RecordRowJson(const store::Record& record, std::string_view description);

// Returns everything that the store knows of the record, its steps in words, and its roofline. The
// best record of the same computation and target is `best`; null: there is none.
Json RecordJson(const store::Record& record, std::string_view description,
                const store::Record* best);

// The forms of ProgramText.
std::span<const std::string_view> ProgramForms();

// Returns the program of the record in one form: "dag" the computation, "schedule" the steps as
// primitives, "loops" the loop nests, "program" the program before code is made of it. The code
// itself takes a code generator, which a scheduler does not have. InvalidArgument: an unknown form;
// NotFound: the record does not tell its computation. Replays and lowers: a stop ends it soon.
StatusOr<std::string> ProgramText(const store::Record& record, std::string_view form,
                                  const std::stop_token& stop);

}  // namespace kiln::scheduler
