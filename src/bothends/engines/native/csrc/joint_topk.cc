#include "joint_topk.h"

#include <algorithm>
#include <limits>

namespace bothends {

namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

}  // namespace

// The best `beam` first; of equals, the one of the lower index.
void JointTopK::rank(std::vector<Sum>* sums) const {
  const size_t kept = std::min(sums->size(), static_cast<size_t>(beam_));
  std::partial_sort(sums->begin(), sums->begin() + kept, sums->end(),
                    [](const Sum& a, const Sum& b) {
                      return a.logprob > b.logprob || (a.logprob == b.logprob && a.index < b.index);
                    });
  sums->resize(kept);
}

void JointTopK::write(const Beginning& last, std::vector<int32_t>* tokens) const {
  const size_t first = tokens->size();
  tokens->resize(first + size_, pad_);
  const Beginning* at = &last;
  while (true) {
    (*tokens)[first + at->slot] = at->token;
    if (at->parent < 0) return;
    at = &open_[at->parent];
  }
}

void JointTopK::add_blocks(const float* logprobs, const int32_t* ids, int width, int row,
                           double before, CandidateList* list) {
  open_.clear();
  closed_.clear();
  size_t begin = 0, end = 0;  // the open beginnings of the slot before
  for (int slot = 0; slot < size_; ++slot) {
    const float* words = logprobs + slot * width;
    const int32_t* word_ids = ids + slot * width;
    double end_logprob = kImpossible;
    for (int w = 0; w < width; ++w) {
      if (word_ids[w] == end_) end_logprob = std::max(end_logprob, static_cast<double>(words[w]));
    }
    const int beginnings = slot == 0 ? 1 : static_cast<int>(end - begin);
    sums_.clear();
    for (int b = 0; b < beginnings; ++b) {
      const double so_far = slot == 0 ? 0.0 : open_[begin + b].logprob;
      const int parent = slot == 0 ? -1 : static_cast<int>(begin) + b;
      if (so_far + end_logprob > kImpossible) {
        closed_.push_back({so_far + end_logprob, parent, end_, slot});
      }
      for (int w = 0; w < width; ++w) {
        if (word_ids[w] == end_ || !(words[w] > -std::numeric_limits<float>::infinity())) continue;
        sums_.push_back({so_far + words[w], b * width + w});
      }
    }
    rank(&sums_);
    const size_t next = open_.size();
    for (const Sum& sum : sums_) {
      const int parent = slot == 0 ? -1 : static_cast<int>(begin) + sum.index / width;
      open_.push_back({sum.logprob, parent, word_ids[sum.index % width], slot});
    }
    begin = next;
    end = open_.size();
    if (begin == end) break;  // every beginning is closed
  }
  // Open blocks first, then closed ones slot by slot: the order in which ties are broken.
  const bool complete = begin < end && open_[begin].slot == size_ - 1;
  const int open_count = complete ? static_cast<int>(end - begin) : 0;
  sums_.clear();
  for (int i = 0; i < open_count; ++i) sums_.push_back({open_[begin + i].logprob, i});
  for (size_t i = 0; i < closed_.size(); ++i) {
    sums_.push_back({closed_[i].logprob, open_count + static_cast<int>(i)});
  }
  rank(&sums_);
  for (const Sum& sum : sums_) {
    const bool is_open = sum.index < open_count;
    const Beginning& last = is_open ? open_[begin + sum.index] : closed_[sum.index - open_count];
    list->candidates.push_back(
        {before + sum.logprob, row, is_open ? -1 : last.slot, list->tokens.size()});
    write(last, &list->tokens);
  }
}

}  // namespace bothends
