// The order in which CPython iterates over a set of small whole numbers.
//
// autotvm's split policy `verbose` takes its factors from list(set(a) | set(b)). An index into such
// a space has a meaning only in that order, so the order is part of the record format. This order
// is that of the hash table: CPython 3.7 to 3.12, Objects/setobject.c (set_add_entry, set_merge and
// set_table_resize; on 64 bits the hash of a small number is the number itself).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kiln::search {

// Returns list(set(a) | set(b)). All numbers must be in [0, 2^60]. Cost: linear.
std::vector<int64_t> PythonUnionOrder(std::span<const int64_t> a, std::span<const int64_t> b);

}  // namespace kiln::search
