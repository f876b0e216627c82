// The connections that this process has made to a server, whichever library has made them.
#pragma once

#include <set>
#include <string>

namespace kiln {

// Shuts down the TCP connections of this process whose other end has an address of `host`, a name
// or a number, and one of the ports. Their owners see the end of the connection. Returns how many
// there were. If the name cannot be looked up, the ports alone decide. Costs a look-up and a system
// call for each open descriptor. Thread-safe.
int ShutDownConnections(const std::string& host, const std::set<int>& ports);

}  // namespace kiln
