#include "decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

namespace bothends {

namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();
// Logits of so many words are held at once: those of a row stay in the first-level cache.
constexpr int kWordChunk = 1024;

}  // namespace

Decoder::Decoder(const Network& network, DecoderBuffers& buffers)
    : Decoder(network, buffers, 0, static_cast<int>(buffers.memory.first.size()) - 1) {}

Decoder::Decoder(const Network& network, DecoderBuffers& buffers, int first, int last)
    : network_(network), buffers_(buffers) {
  buffers_.cache.resize(network.decoder.size());
  for (int s = first; s < last; ++s) sentences_.push_back(s);
}

void Decoder::select(const std::vector<int>& rows) {
  next_path_.resize(rows.size() * slots_);
  next_sentences_.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    next_sentences_[i] = sentences_[rows[i]];
    if (slots_ > 0) {
      std::memcpy(&next_path_[i * slots_], &path_[static_cast<size_t>(rows[i]) * slots_],
                  slots_ * sizeof(int32_t));
    }
  }
  path_.swap(next_path_);
  sentences_.swap(next_sentences_);
}

// The entries that each slot of each row attends to: its row's own past, where the mask allows.
void Decoder::find_entries(const Block& block) {
  const int before = slots_, after = slots_ + block.size;
  next_path_.resize(static_cast<size_t>(rows()) * after);
  for (int r = 0; r < rows(); ++r) {
    int32_t* path = &next_path_[static_cast<size_t>(r) * after];
    if (before > 0) {
      std::memcpy(path, &path_[static_cast<size_t>(r) * before], before * sizeof(int32_t));
    }
    for (int z = 0; z < block.size; ++z) path[before + z] = entries_ + r * block.size + z;
  }
  path_.swap(next_path_);
  slots_ = after;
  visible_.clear();
  visible_first_.assign(1, 0);
  for (int z = 0; z < block.size; ++z) {
    for (int slot = 0; slot < after; ++slot) {
      if (block.mask[static_cast<size_t>(z) * after + slot]) visible_.push_back(slot);
    }
    visible_first_.push_back(static_cast<int>(visible_.size()));
  }
  attended_.resize(static_cast<size_t>(rows()) * visible_.size());
  size_t at = 0;
  for (int r = 0; r < rows(); ++r) {
    const int32_t* path = &path_[static_cast<size_t>(r) * after];
    for (const int slot : visible_) attended_[at++] = path[slot];
  }
}

void Decoder::embed(const int32_t* tokens, const Block& block) {
  const Configuration& c = network_.configuration;
  Workspace& work = buffers_.work;
  const size_t stride = network_.width_stride();
  // The encodings of the block's slots; `query` is free until the first layer.
  work.query.reserve(block.size * stride);
  for (int z = 0; z < block.size; ++z) {
    float* encoding = work.query.data() + z * stride;
    const float* sinusoid = network_.encoding(block.positions[z], work.row.data());
    std::memcpy(encoding, sinusoid, c.width * sizeof(float));
    if (c.direction_embeddings) {
      const float* direction = &network_.direction_embedding[block.directions[z] * c.width];
      for (int i = 0; i < c.width; ++i) encoding[i] += direction[i];
    }
  }
  for (int m = 0; m < rows() * block.size; ++m) {
    const int token = tokens[m];
    network_.kernels.embed(network_.target_embedding.values + static_cast<size_t>(token) * c.width,
                           network_.target_embedding.scales[token],
                           work.query.data() + m % block.size * stride, c.width,
                           work.x.data() + m * stride);
  }
}

void Decoder::attend_past(Layers& layers, int layer, int block_size) {
  const Configuration& c = network_.configuration;
  for (int r = 0; r < rows(); ++r) {
    const int32_t* own = &attended_[static_cast<size_t>(r) * visible_.size()];
    for (int z = 0; z < block_size; ++z) {
      const Entries entries = {buffers_.cache[layer].data(), network_.entry_stride(),
                               static_cast<size_t>(c.width), own + visible_first_[z],
                               visible_first_[z + 1] - visible_first_[z]};
      const int m = r * block_size + z;
      network_.kernels.attend(layers.query(m), entries, c.heads, c.head_width(),
                              buffers_.work.scores.data(), layers.attended(m));
    }
  }
}

void Decoder::attend_source(Layers& layers, int layer, int block_size) {
  const Configuration& c = network_.configuration;
  const Memory& memory = buffers_.memory;
  for (int r = 0; r < rows(); ++r) {
    const int sentence = sentences_[r];
    const Entries entries = {memory.sentence(network_, layer, sentence), network_.entry_stride(),
                             static_cast<size_t>(c.width), nullptr, memory.length(sentence)};
    for (int m = r * block_size; m < (r + 1) * block_size; ++m) {
      network_.kernels.attend(layers.query(m), entries, c.heads, c.head_width(),
                              buffers_.work.scores.data(), layers.attended(m));
    }
  }
}

void Decoder::advance(const int32_t* tokens, const Block& block) {
  const int rows_of_block = rows() * block.size;
  const size_t stride = network_.entry_stride();
  if (static_cast<int64_t>(entries_) + rows_of_block > std::numeric_limits<int32_t>::max()) {
    throw std::bad_alloc();
  }
  find_entries(block);
  int longest = slots_;
  for (const int sentence : sentences_) longest = std::max(longest, buffers_.memory.length(sentence));
  Workspace& work = buffers_.work;
  work.reserve(network_, rows_of_block, longest);
  embed(tokens, block);
  Layers layers(network_, work, rows_of_block);
  layers.begin();
  for (size_t i = 0; i < network_.decoder.size(); ++i) {
    const DecoderLayer& layer = network_.decoder[i];
    Buffer<float>& cache = buffers_.cache[i];
    cache.reserve((entries_ + rows_of_block) * stride, entries_ * stride);
    layers.enter(layer.self.norm);
    layers.project(layer.self.query, work.query.data(), network_.width_stride());
    layers.project(layer.self.key_value, cache.data() + entries_ * stride, stride);
    attend_past(layers, static_cast<int>(i), block.size);
    layers.take_attended();
    layers.leave(layer.self.output, layer.self.norm);

    layers.enter(layer.cross.norm);
    layers.project(layer.cross.query, work.query.data(), network_.width_stride());
    attend_source(layers, static_cast<int>(i), block.size);
    layers.take_attended();
    layers.leave(layer.cross.output, layer.cross.norm);

    layers.feed_forward(layer.feed_forward);
  }
  layers.end(network_.decoder_norm);
  entries_ += rows_of_block;
}

template <typename Take>
void Decoder::each_chunk(const PackedMatrix& output, int first, int last, Take take) {
  Workspace& work = buffers_.work;
  const int panels = std::max(1, kWordChunk / output.panel), rows = last - first;
  const size_t stride = static_cast<size_t>(panels) * output.panel;
  work.logits.reserve(rows * stride);
  QuantisedRows input = Layers(network_, work, rows).input();
  input.values += first * input.stride;
  input.scales += first;
  for (int panel = 0; panel < output.panels(); panel += panels) {
    const int end = std::min(panel + panels, output.panels());
    work.product(network_.kernels, input, output, panel, end, work.logits.data(), stride, false);
    const int word = panel * output.panel;
    const int count = std::min(end * output.panel, output.outputs) - word;
    for (int m = 0; m < rows; ++m) take(first + m, work.logits.data() + m * stride, count, word);
  }
}

void Decoder::step(const int32_t* tokens, const Block& block, int words, Words* best,
                   const int32_t* targets, float* forced) {
  advance(tokens, block);
  const int rows_of_block = rows() * block.size;
  words = std::min(words, network_.configuration.target_words);
  best->words = words;
  best->logprobs.assign(static_cast<size_t>(rows_of_block) * words, kImpossible);
  best->ids.assign(static_cast<size_t>(rows_of_block) * words, 0);
  if (targets != nullptr) std::fill_n(forced, rows_of_block, kImpossible);
  lists_.assign(rows_of_block, BestWords{nullptr, nullptr, words, 0, kImpossible, 0.0});
  for (int m = 0; m < rows_of_block && words > 0; ++m) {
    lists_[m].logits = &best->logprobs[static_cast<size_t>(m) * words];
    lists_[m].ids = &best->ids[static_cast<size_t>(m) * words];
  }
  // Rows that share words go through the output layer together: first the words that sentences have in
  // common, or all words, and then those of each sentence alone.
  for (const bool own : {false, true}) {
    for (int begin = 0, end; begin < rows(); begin = end) {
      const PackedMatrix* output = part_of_output(begin, own);
      for (end = begin + 1; end < rows() && part_of_output(end, own) == output;) ++end;
      if (output == nullptr) continue;
      const auto take = [&](int m, const float* logits, int count, int word) {
        const SentenceWords* words = allowed(m / block.size);
        if (own) word += words->first_own();
        network_.kernels.scan_words(logits, count, word, &lists_[m]);
        if (targets == nullptr) return;
        const int place = (words == nullptr ? targets[m] : words->place(targets[m])) - word;
        if (place >= 0 && place < count) forced[m] = logits[place];
      };
      each_chunk(*output, begin * block.size, end * block.size, take);
    }
  }
  for (int m = 0; m < rows_of_block; ++m) {
    finish_row(lists_[m], allowed(m / block.size), forced ? forced + m : nullptr);
  }
}

const PackedMatrix* Decoder::part_of_output(int row, bool own) const {
  const SentenceWords* words = allowed(row);
  if (words == nullptr) return own ? nullptr : &network_.output;
  return own ? words->own() : words->shared();
}

// Logits become logprobs, and places among allowed words become ids.
void Decoder::finish_row(const BestWords& list, const SentenceWords* words, float* forced) const {
  const float rest = static_cast<float>(std::log(list.sum));
  if (forced != nullptr) *forced = *forced - list.largest - rest;
  for (int i = 0; i < list.found; ++i) {
    const float logprob = list.logits[i] - list.largest - rest;
    list.logits[i] = logprob == logprob ? logprob : kImpossible;  // not a number: no word
    if (words != nullptr) list.ids[i] = words->id(list.ids[i]);
  }
}

void Decoder::force(const int32_t* tokens, const Block& block, const int32_t* targets,
                    float* logprobs) {
  Words none;
  step(tokens, block, 0, &none, targets, logprobs);
}

}  // namespace bothends
