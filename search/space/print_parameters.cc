// Prints the table of docs/search-parameters.md.
#include <fmt/format.h>

#include "search/space/parameters.h"

int main() { fmt::print("{}", kiln::search::ParameterTable()); }
