// How a cost was measured: a part of each record, since costs of different ways are not comparable.
//
// Text form: launches, caches and clocks, with '/' between them: "graph/warm/free". An empty text
// means that the way is not known, as of imported lines.
//
// Pure functions of immutable values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::device {

struct MeasuredAs {
  enum class Launches {
    // The host calls the program as a function: CPUs, and targets that run nothing.
    kCall,
    // Batches of short calls run as a CUDA graph. Long calls, whose time does not depend on how
    // they are launched, are launched one by one.
    kGraph,
    // The host launches each kernel by itself, on a stream.
    kStream,
  };
  // State of the last-level cache before each reading. A cold cache was written over.
  enum class Caches { kWarm, kCold };
  // A device chooses free clocks by itself. Somebody has set fixed ones.
  enum class Clocks { kFree, kFixed };

  Launches launches = Launches::kCall;
  Caches caches = Caches::kWarm;
  Clocks clocks = Clocks::kFree;
  bool operator==(const MeasuredAs&) const = default;
};

std::string PrintMeasuredAs(const MeasuredAs& way);
// None: "", the way is not known. InvalidArgument with the text that was found and the words that
// were expected.
StatusOr<std::optional<MeasuredAs>> ParseMeasuredAs(std::string_view text);

// Checks the name of a deployment: "graph", "stream", or "" for any.
Status CheckDeployment(std::string_view as_deployed);
// Returns whether a record of this way tells the time of a program that is deployed so.
bool IsAsDeployed(std::string_view measured_as, std::string_view as_deployed);

}  // namespace kiln::device
