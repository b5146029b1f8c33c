// Beam search over blocks: Algorithm 1 of the paper, from source tokens to hypotheses in one call.
//
// `beam_search` in bothends/search/beam.py is the readable reference, and docs/search.md explains it. The
// names here are the same. Rows need not be rectangular: a row that is dead there does not exist here.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "decoder.h"
#include "encoder.h"

namespace bothends {

// What an order says of the slots of a search. It repeats: a position grows by the same step from each
// period to the next, and whether slot `i` may attend to slot `j` depends on their places within a period,
// and on whether it is the same period.
struct OrderTables {
  int block_size = 1;
  int period = 1;
  std::vector<int64_t> positions;      // (2 * period,)
  std::vector<int64_t> directions;     // (period,)
  std::vector<uint8_t> same, earlier;  // (period, period)

  int64_t position(int slot) const {
    const int64_t place = slot % period, step = positions[place + period] - positions[place];
    return positions[place] + slot / period * step;
  }
  int64_t direction(int slot) const { return directions[slot % period]; }
  bool may_attend(int i, int j) const {
    if (j / period > i / period) return false;
    const auto& table = i / period == j / period ? same : earlier;
    return table[static_cast<size_t>(i % period) * period + j % period] != 0;
  }
};

struct SearchRequest {
  int beam = 4;
  int min_length = 0;
  std::vector<int> limits;  // of each sentence, in tokens of text
  int32_t start = 0, end = 0, pad = 0;
  std::vector<std::vector<int32_t>> allowed;  // words of each sentence, rising; empty: all of them
};

struct Hypothesis {
  std::vector<int32_t> tokens;  // in generation order, without the end symbol
  double logprob;
  bool finished;
};

struct SearchResult {
  std::vector<std::vector<Hypothesis>> pools;  // of each sentence, in the order they were found
  double encoder_seconds = 0, decoder_seconds = 0, search_seconds = 0;
  int steps = 0;
};

// `shared_words`, if there are any, are packed already, for sentences that may use all of them.
SearchResult search(const Network& network, const OrderTables& order, const SearchRequest& request,
                    const SourceBatch& source, std::shared_ptr<const OutputWords> shared_words,
                    DecoderBuffers& buffers);

}  // namespace bothends
