// The order in which CPython iterates over a set of small whole numbers.
//
// autotvm's split policy `verbose` takes its factors from list(set(a) | set(b)). An index into such
// a space means something only in that order, so it is a part of the record format. The order is
// that of the hash table: CPython 3.7 to 3.12, Objects/setobject.c (set_add_entry, set_merge and
// set_table_resize; 64 bits, where the hash of a small number is the number).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kiln::search {

// list(set(a) | set(b)). All numbers are in [0, 2^60]. Cost: linear.
std::vector<int64_t> PythonUnionOrder(std::span<const int64_t> a, std::span<const int64_t> b);

}  // namespace kiln::search
