// Calls between which a program's arguments change in place, so that it meets no input twice and
// finds no output as it left it. On a GPU such calls are queued back to back, as timed calls are,
// and only small kernels of the runner run between them.
//
// The inputs get another order of their elements, and other signs, and thereby keep the
// distribution of their values. They are as they were in one call, whose outputs are looked at. The
// program cannot know which call that is: all are queued before the first one begins, and the same
// runs between all of them. Outputs and workspaces get another order and flipped bits, so that what
// a program leaves there is wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "runner/arguments.h"

namespace kiln::runner {

struct ChangedCalls {
  // Number of calls, two or more.
  int calls = 0;
  // The call that finds the inputs as they were, from 0.
  int checked = 0;
  // Everything else that the program cannot know depends on it.
  uint64_t seed = 0;
  // A program that computes in each call takes at most this many times longer in such calls.
  double most_ratio = 0;
};

// Returns how often to call a program whose calls take `call_s` when they are timed, and
// `longest_s` at most; nothing if one call by itself, whose outputs are looked at, is read as well
// as many are: for a long program, or one with much data.
std::optional<ChangedCalls> PlanChangedCalls(double call_s, double longest_s,
                                             const std::vector<Argument>& arguments,
                                             std::mt19937_64& random);

// A change of an argument before a call. Two elements change places if their places differ by the
// bits of `mask` (PartnerOf in cuda_kernels.cu). In some elements the bits of `flip` are flipped:
// first in those at places that `from` selects, and after they have moved in those at places that
// `to` selects. A number selects half of all places, kNoPlaces and kAllPlaces what they say.
struct Change {
  uint64_t mask = 0;
  uint64_t flip = 0;
  uint64_t from = 0;
  uint64_t to = 0;
};
constexpr uint64_t kNoPlaces = 0, kAllPlaces = ~uint64_t{0};

// Returns the changes of the argument at `index` before each of the calls, and as many for the same
// calls without the program; nothing for a large workspace, which stays as it is. After the last
// one an input is as it was.
std::vector<Change> ChangesOf(const Argument& argument, size_t index, const ChangedCalls& calls);

// Elements of an output of the checked call that are looked at.
constexpr int64_t kMostSampled = 4096;

}  // namespace kiln::runner
