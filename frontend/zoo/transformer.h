// Layers of transformers of the base size: 12 layers, 768 features, 12 heads.
//
// Activations are rows [batch * tokens, features], so that a dense layer is one matrix product.
// Only attention has [batch, heads, tokens, features of a head].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/zoo/network_writer.h"

namespace kiln::frontend {

inline constexpr int kTransformerLayers = 12;
inline constexpr int64_t kFeatures = 768;
inline constexpr int64_t kHeads = 12;
inline constexpr int64_t kHeadFeatures = kFeatures / kHeads;
inline constexpr int64_t kHiddenUnits = 4 * kFeatures;

// Returns a table of `rows` rows of features for look-ups.
ValueId Embedding(NetworkWriter& w, std::string name, int64_t rows);
// Returns `count` rows of a table, from `first` on.
ValueId TableRows(NetworkWriter& w, ValueId table, int64_t first, int64_t count, std::string name);
// Returns the rows of `table` that `ids` [batch, tokens] names: [batch, tokens, features].
ValueId LookUp(NetworkWriter& w, ValueId table, ValueId ids, std::string name);
// Returns [batch, tokens, features] as rows.
ValueId AsRows(NetworkWriter& w, ValueId x, int64_t tokens, std::string name);
// Returns the row of one token of each sequence: [batch, features].
ValueId RowOfToken(NetworkWriter& w, ValueId rows, int64_t tokens, int64_t token,
                   const std::string& name);

ValueId LayerNorm(NetworkWriter& w, ValueId x, const std::string& name, double epsilon);

// Values [batch, heads, tokens, features of a head].
struct Heads {
  ValueId query, key, value;
};
ValueId SplitHeads(NetworkWriter& w, ValueId rows, int64_t tokens, const std::string& name);
// Returns softmax(query key^T / sqrt(features of a head) + mask) value, as rows. The mask may be
// absent.
ValueId Attention(NetworkWriter& w, const Heads& heads, int64_t tokens, ValueId mask,
                  const std::string& name);
// Writes a dense layer, `activation`, and a dense layer.
ValueId FeedForward(NetworkWriter& w, ValueId x, const std::string& activation,
                    const std::string& name);

// A layer that normalizes its input and adds to it. NormedHeads writes the first half, the inputs
// of attention; FinishLayer writes the rest.
struct PreNormLayer {
  std::string name;
  int64_t tokens;
  std::string activation;
  double epsilon;
  ValueId mask = graph::kAbsent;
};
Heads NormedHeads(NetworkWriter& w, ValueId x, const PreNormLayer& layer);
ValueId FinishLayer(NetworkWriter& w, ValueId x, const Heads& heads, const PreNormLayer& layer);

}  // namespace kiln::frontend
