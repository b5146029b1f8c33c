#include "search.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "joint_topk.h"

namespace bothends {

namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The open hypotheses, H_t of Algorithm 1: row by row, the rows of a sentence side by side.
struct Live {
  std::vector<int> sentences;   // of each row
  std::vector<double> logprobs;
  std::vector<int32_t> history;  // (rows, slots)
  int slots = 0;

  int rows() const { return static_cast<int>(sentences.size()); }
  const int32_t* row(int r) const { return history.data() + static_cast<size_t>(r) * slots; }
};

class Search {
 public:
  Search(const OrderTables& order, const SearchRequest& request, Decoder& decoder,
         SearchResult* result)
      : order_(order), request_(request), decoder_(decoder), result_(*result),
        size_(order.block_size), topk_(size_, request.beam, request.end, request.pad),
        positions_(size_), directions_(size_) {}

  void run() {
    for (int s = 0; s < decoder_.rows(); ++s) {  // line 1
      live_.sentences.push_back(s);
      live_.logprobs.push_back(0.0);
    }
    result_.pools.resize(live_.rows());  // line 2
    for (int block = 0; live_.rows() > 0; ++block) {  // lines 3, 4 and 18
      step(block);
      keep_to_lengths(block);
      advance(block);
    }
  }

 private:
  // Lines 5 and 6.
  void step(int block) {
    const int first = block * size_, after = first + size_;
    tokens_.assign(static_cast<size_t>(live_.rows()) * size_, request_.start);
    if (block > 0) {
      for (int r = 0; r < live_.rows(); ++r) {
        std::copy_n(live_.row(r) + first - size_, size_, &tokens_[static_cast<size_t>(r) * size_]);
      }
    }
    mask_.resize(static_cast<size_t>(size_) * after);
    for (int z = 0; z < size_; ++z) {
      positions_[z] = order_.position(first + z);
      directions_[z] = order_.direction(first + z);
      for (int slot = 0; slot < after; ++slot) {
        mask_[static_cast<size_t>(z) * after + slot] = order_.may_attend(first + z, slot);
      }
    }
    // One word more where the end symbol is forbidden, because it may be one of the best.
    const int words = request_.beam + (first < request_.min_length);
    const Block fed = {size_, positions_.data(), directions_.data(), mask_.data()};
    const auto start = std::chrono::steady_clock::now();
    decoder_.step(tokens_.data(), fed, words, &top_);
    result_.decoder_seconds += seconds_since(start);
    ++result_.steps;
  }

  // `_within_lengths` of the reference: no end symbol before the minimum, one way on at the limit.
  void keep_to_lengths(int block) {
    const int width = top_.words;
    for (int r = 0; r < live_.rows(); ++r) {
      const int limit = request_.limits[live_.sentences[r]];
      for (int z = 0; z < size_; ++z) {
        const int slot = block * size_ + z;
        float* logprobs = &top_.logprobs[(static_cast<size_t>(r) * size_ + z) * width];
        int32_t* ids = &top_.ids[(static_cast<size_t>(r) * size_ + z) * width];
        if (slot < request_.min_length) {
          for (int w = 0; w < width; ++w) {
            if (ids[w] == request_.end) logprobs[w] = kImpossible;
          }
        } else {
          // The word that was asked for on top would make the search depend on where a block starts.
          for (int w = request_.beam; w < width; ++w) logprobs[w] = kImpossible;
        }
        if (slot < limit) continue;
        const bool ending =
            slot == limit && ids[0] == request_.end && logprobs[0] > kImpossible;
        for (int w = 1; w < width; ++w) logprobs[w] = kImpossible;
        if (!ending) {  // the cut adds nothing
          logprobs[0] = 0.0f;
          ids[0] = request_.pad;
        }
      }
    }
  }

  // Lines 7 to 17, sentence by sentence.
  void advance(int block) {
    const int width = top_.words, after = (block + 1) * size_;
    next_.sentences.clear();
    next_.logprobs.clear();
    next_.history.clear();
    next_.slots = after;
    chosen_.clear();
    for (int begin = 0, end; begin < live_.rows(); begin = end) {
      const int sentence = live_.sentences[begin];
      list_.clear();
      for (end = begin; end < live_.rows() && live_.sentences[end] == sentence; ++end) {
        const size_t at = static_cast<size_t>(end) * size_ * width;
        topk_.add_blocks(&top_.logprobs[at], &top_.ids[at], width, end, live_.logprobs[end], &list_);
      }
      choose(sentence, after);
    }
    bool moved = static_cast<int>(chosen_.size()) != live_.rows();
    for (size_t i = 0; i < chosen_.size() && !moved; ++i) moved = chosen_[i] != static_cast<int>(i);
    if (moved && !chosen_.empty()) decoder_.select(chosen_);
    std::swap(live_, next_);
  }

  // Which candidates of a sentence are finished, and which go on.
  void choose(int sentence, int after) {
    std::vector<Candidate>& candidates = list_.candidates;
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.logprob > b.logprob;
    });
    std::vector<Hypothesis>& pool = result_.pools[sentence];
    const size_t beam = static_cast<size_t>(request_.beam);
    for (size_t i = 0; i < std::min(beam, candidates.size()); ++i) {  // lines 9 to 11
      if (candidates[i].ends_at >= 0) finish(candidates[i], candidates[i].ends_at, true, &pool);
    }
    const int limit = request_.limits[sentence];
    const bool at_limit = limit < after;
    size_t kept = 0;
    const size_t first_kept = chosen_.size();
    for (const Candidate& candidate : candidates) {  // lines 12, 13 and 17
      if (kept == beam) break;
      if (candidate.ends_at >= 0) continue;
      ++kept;
      if (at_limit) {
        finish(candidate, limit - (after - size_), false, &pool);
      } else {
        keep(candidate, sentence);
      }
    }
    if (pool.size() >= beam) drop(first_kept);  // the sentence is done
  }

  // A hypothesis of `candidate`'s row and the first `count` tokens of its block. At a limit inside an
  // earlier block there would be none left, but a sentence has left the search by then.
  void finish(const Candidate& candidate, int count, bool finished, std::vector<Hypothesis>* pool) {
    Hypothesis hypothesis;
    const int32_t* before = live_.row(candidate.row);
    const int32_t* block = &list_.tokens[candidate.first];
    hypothesis.tokens.assign(before, before + live_.slots);
    hypothesis.tokens.insert(hypothesis.tokens.end(), block, block + count);
    hypothesis.logprob = candidate.logprob;
    hypothesis.finished = finished;
    pool->push_back(std::move(hypothesis));
  }

  void keep(const Candidate& candidate, int sentence) {
    const int32_t* before = live_.row(candidate.row);
    const int32_t* block = &list_.tokens[candidate.first];
    next_.sentences.push_back(sentence);
    next_.logprobs.push_back(candidate.logprob);
    next_.history.insert(next_.history.end(), before, before + live_.slots);
    next_.history.insert(next_.history.end(), block, block + size_);
    chosen_.push_back(candidate.row);
  }

  void drop(size_t first) {
    next_.sentences.resize(first);
    next_.logprobs.resize(first);
    next_.history.resize(first * next_.slots);
    chosen_.resize(first);
  }

  const OrderTables& order_;
  const SearchRequest& request_;
  Decoder& decoder_;
  SearchResult& result_;
  const int size_;
  JointTopK topk_;
  Live live_, next_;
  Words top_;
  CandidateList list_;
  std::vector<int> chosen_;  // present rows that go on
  std::vector<int32_t> tokens_;
  std::vector<int64_t> positions_, directions_;
  std::vector<uint8_t> mask_;
};

}  // namespace

SearchResult search(const Network& network, const OrderTables& order, const SearchRequest& request,
                    const SourceBatch& source, std::shared_ptr<const OutputWords> shared_words,
                    DecoderBuffers& buffers) {
  const auto start = std::chrono::steady_clock::now();
  SearchResult result;
  encode(network, source, buffers.work, &buffers.memory);
  result.encoder_seconds = seconds_since(start);
  Decoder decoder(network, buffers);
  const WordsOfSentences words = pack_words(network, std::move(shared_words), request.allowed);
  decoder.allow(words);
  Search(order, request, decoder, &result).run();
  result.search_seconds = seconds_since(start) - result.encoder_seconds - result.decoder_seconds;
  return result;
}

}  // namespace bothends
