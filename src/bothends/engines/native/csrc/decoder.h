// Stepping the decoder: rows, their past, and the best words of each slot.
//
// The past is never moved. Each step writes its keys and values behind those before, and a row knows
// its own past as a list of entries: selecting rows copies lists of integers, and a sentence that leaves
// takes nothing with it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "encoder.h"
#include "layers.h"
#include "output_words.h"

namespace bothends {

// One block: what it is fed besides its tokens, the same for every row.
struct Block {
  int size = 0;
  const int64_t* positions;   // (size,)
  const int64_t* directions;  // (size,)
  const uint8_t* mask;        // (size, slots so far and of this block): may attend
};

// The best words of every slot, (rows, block size, words).
struct Words {
  int words = 0;
  std::vector<float> logprobs;
  std::vector<int32_t> ids;
};

// Memory that one search leaves to the next.
struct DecoderBuffers {
  Workspace work;
  Memory memory;
  std::vector<Buffer<float>> cache;  // of each layer, (entries, entry_stride)

  size_t bytes() const {
    size_t all = work.bytes() + memory.entries.bytes();
    for (const Buffer<float>& layer : cache) all += layer.bytes();
    return all;
  }
};

class Decoder {
 public:
  // One row for each sentence of the memory in `buffers`, and nothing generated yet.
  Decoder(const Network& network, DecoderBuffers& buffers);
  // The same for sentences `first` to `last` of it.
  Decoder(const Network& network, DecoderBuffers& buffers, int first, int last);

  // Use these words only, of every sentence of the memory. An empty vector: all words.
  void allow(const WordsOfSentences& words) { allowed_ = words.empty() ? nullptr : &words; }

  int rows() const { return static_cast<int>(sentences_.size()); }
  int slots() const { return slots_; }
  int sentence(int row) const { return sentences_[row]; }

  // Feed a block, tokens (rows, size), and find the best `words` words of each slot; and, if there are
  // `targets` (rows, size), their logprobs `forced`.
  void step(const int32_t* tokens, const Block& block, int words, Words* best,
            const int32_t* targets = nullptr, float* forced = nullptr);
  // Feed a block, and find the logprobs of `targets` (rows, size) in its slots.
  void force(const int32_t* tokens, const Block& block, const int32_t* targets, float* logprobs);
  // Go on with `rows`, indices of present ones.
  void select(const std::vector<int>& rows);

 private:
  void advance(const int32_t* tokens, const Block& block);
  void embed(const int32_t* tokens, const Block& block);
  void find_entries(const Block& block);
  void attend_past(Layers& layers, int layer, int block_size);
  void attend_source(Layers& layers, int layer, int block_size);
  // Logits of words for rows `first` to `last`, chunk by chunk: `take(row, logits, count, first word)`.
  template <typename Take>
  void each_chunk(const PackedMatrix& output, int first, int last, Take take);
  void finish_row(const BestWords& list, const SentenceWords* words, float* forced) const;
  // The part of the output layer that a row shares with others, or that it has alone; null: none.
  const PackedMatrix* part_of_output(int row, bool own) const;
  // The words that a row's sentence may use; null: all.
  const SentenceWords* allowed(int row) const {
    if (allowed_ == nullptr) return nullptr;
    const SentenceWords& words = (*allowed_)[sentences_[row]];
    return words.all() ? nullptr : &words;
  }

  const Network& network_;
  DecoderBuffers& buffers_;
  const WordsOfSentences* allowed_ = nullptr;
  std::vector<int> sentences_;        // of each row
  std::vector<int> next_sentences_;
  int slots_ = 0;
  std::vector<int32_t> path_;         // (rows, slots_): a row's entries
  std::vector<int32_t> next_path_;
  int32_t entries_ = 0;               // in use, of all rows that ever were
  std::vector<int> visible_;          // of the present block, slot by slot
  std::vector<int> visible_first_;    // (block size + 1,)
  std::vector<int32_t> attended_;     // entries that each row and slot attends to
  std::vector<BestWords> lists_;      // of each row and slot
};

}  // namespace bothends
