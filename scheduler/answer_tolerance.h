// How far the answers of a task may be off its reference's.
#pragma once

#include <string_view>

#include "proto/trial.pb.h"

namespace kiln::scheduler {

// What was asked for; where nothing was (0), what the target's arithmetic needs of the computation,
// and 0, by type, where it needs no more. Texts that are none need no more either.
v1::Tolerance AnswerTolerance(const v1::Tolerance& asked, std::string_view dag,
                              std::string_view target);

}  // namespace kiln::scheduler
