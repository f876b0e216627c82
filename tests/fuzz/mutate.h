// Spoils valid inputs: bytes, numbers and words of text, fields of messages. The result depends
// only on the state of the generator.
#pragma once

#include <google/protobuf/message.h>

#include <span>
#include <string>
#include <string_view>

#include "base/numbers/rng.h"

namespace kiln::fuzz {

// Makes one to four changes: bytes are flipped, cut out, inserted or repeated; numbers become
// extreme; words of `dictionary`, or a piece of `other`, are inserted. The result has at most
// `most_bytes`.
std::string MutateText(std::string_view text, std::string_view other,
                       std::span<const std::string_view> dictionary, size_t most_bytes, Rng& rng);

// Makes one to three changes that mostly leave the text of its kind. Pieces end with a `separator`;
// some are cut out, repeated, swapped, or taken from `other`. Numbers become others of their size.
std::string MutatePieces(std::string_view text, std::string_view other, std::string_view separator,
                         Rng& rng);

// Replaces one number, type, function or operator by another, at all its places. A valid
// computation often stays valid.
std::string ReplaceEverywhere(std::string_view text, Rng& rng);

// Replaces one of the numbers that begin a list, such as the lengths of a split.
std::string ChangeListHead(std::string_view text, Rng& rng);

// Sets, clears or spoils a few fields, at any depth.
void MutateMessage(google::protobuf::Message& message, Rng& rng);

// Returns a number that is often forgotten, as text: 0, -1, limits of types, "nan".
std::string ExtremeNumber(Rng& rng);

}  // namespace kiln::fuzz
