// The options of a measurement, with their defaults, and what they say about a program's time.
//
// Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "proto/trial.pb.h"
#include "runner/timing.h"

namespace kiln::runner {

// Replaces zeros by their defaults (proto/trial.proto).
v1::MeasureOptions WithDefaults(v1::MeasureOptions options);

// Returns the way of measuring on a device of this kind ("cuda", "cpu"), in the text form of
// device/measured_as.h. The runner leaves a device's clocks to the device.
std::string MeasuredAs(std::string_view device_kind, const v1::MeasureOptions& options);

// Returns the time from which a program need not be timed well; none if no cost is known to compare
// with, or nothing may be stopped early.
std::optional<double> EarlyStopSeconds(const v1::MeasureOptions& options);

// Returns the options of the timing, without its budget and the time of an earlier call, which the
// trial knows.
TimingOptions TimingFrom(const v1::MeasureOptions& options);

// Returns whether the checked run of a long program is enough: the program is far slower, or its
// time limit leaves no time for another run. `first_s` is the time of the run, `used_s` that of the
// run with its check.
bool IsEnough(const v1::MeasureOptions& options, double first_s, double used_s);

}  // namespace kiln::runner
