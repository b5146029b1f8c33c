// The best blocks that continue one row, out of all combinations of its slots' words.
//
// The same rules as `joint_topk` in bothends/search/beam.py, which is the reference: an end symbol
// closes its block, closed blocks are not pruned beside open ones, and ties go to the lower rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bothends {

struct Candidate {
  double logprob;
  int row;       // that it continues
  int ends_at;   // slot of its end symbol in the block; -1: it goes on
  size_t first;  // of its tokens in `CandidateList::tokens`
};

struct CandidateList {
  std::vector<Candidate> candidates;
  std::vector<int32_t> tokens;

  void clear() {
    candidates.clear();
    tokens.clear();
  }
};

class JointTopK {
 public:
  JointTopK(int block_size, int beam, int32_t end, int32_t pad)
      : size_(block_size), beam_(beam), end_(end), pad_(pad) {}

  // Add the best `beam` blocks of a row to `list`, best first. `logprobs` and `ids` are (slots, width),
  // and a word of logprob -infinity is none. `before` is the row's own logprob.
  void add_blocks(const float* logprobs, const int32_t* ids, int width, int row, double before,
                  CandidateList* list);

 private:
  // A beginning of a block: a word after an earlier beginning, or the end symbol after it.
  struct Beginning {
    double logprob;
    int parent;  // in the list of the slot before; -1 at the start
    int32_t token;
    int slot;
  };
  struct Sum {
    double logprob;
    int index;
  };

  void rank(std::vector<Sum>* sums) const;
  void write(const Beginning& last, std::vector<int32_t>* tokens) const;

  const int size_, beam_;
  const int32_t end_, pad_;
  std::vector<Beginning> open_;         // of all slots, one after another
  std::vector<Beginning> closed_;
  std::vector<Sum> sums_;
};

}  // namespace bothends
