// Regions that an integer input chooses: of w[e[b], k, n] a tile in shared memory holds the matrix
// that e[b] numbers, where b is fixed for the tile. Of x[rows[i], k] it holds the rows that rows[i]
// numbers, one behind the other, where i varies in the tile.
//
// Bound inference writes the chosen index as a load of a stage, because a program and its buffers
// are made later. Pure functions.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/lower/bounds.h"

namespace kiln::lower {

// Is the form an element of an integer input, in any width, and nothing else? What is read with it
// is inside its tensor, as the limit of the input says (dag/index_limit.h).
bool IsChosenIndex(const arith::Linear& form);
// Returns the load of that element. The form must be a chosen index.
ir::Expr ChoosingLoad(const arith::Linear& form);

// Returns the index that the input has at a place.
arith::Linear ChosenAt(const ChosenPlaces& chosen, const arith::Linear& place,
                       arith::Simplifier& simplifier);

// Returns where in dimension d of the tile the element with this index is.
arith::Linear PlaceInTile(const StageBounds& tile, size_t d, const arith::Linear& index,
                          arith::Simplifier& simplifier);

// Returns the load of the program for one of stage `load.id`, an input.
using ProgramLoad = absl::FunctionRef<ir::Expr(ir::Expr load)>;

// Replaces the loads of stages in all regions, and in what follows from them.
void NameChosenIndices(Bounds& bounds, ProgramLoad in_program);

}  // namespace kiln::lower
