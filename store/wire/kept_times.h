// Record::times, the bytes that say where a trial's time went and when its steps were.
//
// They are a serialized TrialTimes. Behind its fields, as field 15, which TrialTimes reserves,
// stand the instants of the trial's steps: a bit for each instant that is known, then the first one
// in microseconds of unix time, and of each other one its distance from the one before. All six
// take about 30 bytes. Records of Kilns that kept no instants have none.
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "proto/trial.pb.h"

namespace kiln::store {

// Returns "" if nothing is known.
std::string PrintTimes(const v1::TrialTimes& times, const v1::TrialInstants& instants);
// Appends the instants to a serialized TrialTimes. Appends nothing if none is known.
void AppendInstants(const v1::TrialInstants& instants, std::string& times);

// Sets times and instants of `result` to what the bytes say. Bytes that say neither, as another
// program may have written them, leave both unset.
void ReadTimes(std::string_view bytes, v1::TrialResult& result);

}  // namespace kiln::store
