// The words of a template's text that may stand after '=' or by themselves, and their arguments.
// docs/templates.md explains each of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::search {

// The meaning of a name or argument.
enum class Meaning : uint8_t {
  kStage,
  kLoop,        // also choose(number, loop, loop, ...)
  kNumber,      // known once the computation is known
  kKnobNumber,  // known once the values of knobs are known
  kSplitKnob,   // a knob: KNOB[i] is a size of a split
  kReorderKnob,
  kAnnotateKnob,
  kLocateKnob,  // a knob: KNOB[i] is the place of a cache
  kOptionKnob,  // a knob: KNOB is the value of an option
  kWord,        // one word of a fixed list, for instance blockIdx.x
};

// A step of a schedule. A signature is a list of words, separated by blanks: stage, loop, number,
// split_knob, reorder_knob, annotate_knob, word; "stages" and "loops" stand for one or more.
struct Primitive {
  std::string_view word;
  std::string_view results;     // "": none
  std::string_view parameters;  // variants are separated by " or "
  // Whether the step leaves the schedule as it is. Then knobs may follow it.
  bool only_names = false;
};
std::span<const Primitive> Primitives();
// Returns null if there is no such step.
const Primitive* FindPrimitive(std::string_view word);
std::vector<std::string> PrimitiveWords();

// The words that find a stage of the computation: "reduction", "output", "input" of a stage, "op"
// by its name. These words have signatures like steps.
std::span<const Primitive> Places();

}  // namespace kiln::search
