// Shortens the loops of a schedule to the few lines that a summary has room for.
//
// Pure function; any thread.
#pragma once

#include <string>
#include <string_view>

namespace kiln::client {

// `loops` is the text of schedule::PrintLoops. Loops that hold nothing but the next loop share one
// line, the outermost first, with their computation at the end:
//   parallel i.0@j.0@ (16), k.0 (8), i.2 (4), vectorize j.3 (64): C
// A line has at most `columns` columns, and there are at most `lines` lines. The last line says how
// many are left out.
std::string ShortLoops(std::string_view loops, int columns, int lines);

}  // namespace kiln::client
