// The load of this machine by all its programs, as Linux reports it.
//
// Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln {

// Seconds of all cores since the machine began, in the unit of /proc/stat.
struct CpuTimes {
  // Time of programs and the system.
  double busy = 0;
  // Time that a hypervisor gave to other machines.
  double stolen = 0;
  double all = 0;
};

// Parses the text of /proc/stat. InvalidArgument: the text has no line of all cores.
StatusOr<CpuTimes> ParseCpuTimes(std::string_view proc_stat);
StatusOr<CpuTimes> ReadCpuTimes();

// Shares of all cores between two readings, the earlier one first; 0 if no time has passed.
double BusyShare(const CpuTimes& before, const CpuTimes& after);
double StolenShare(const CpuTimes& before, const CpuTimes& after);

// Returns "load 7.1 on 2 cores". If much time was stolen since the machine began, the text adds
// "12% of them stolen". "": the load is not known.
std::string LoadText();

}  // namespace kiln
