// Which steps of a panel maddubs may sum in int16s.
//
// A step is four inputs of each output of a panel. maddubs adds the products of two inputs into an
// int16, and another instruction widens two of these sums into an int32. Several steps may be added
// before they are widened, if no sum can leave an int16: if the positive weights that meet in a lane sum
// to at most 128, and so do the negative ones. Three steps that lie side by side often do not fit; but
// any three of a panel may be summed, and then nearly all find two others. (Four as well, with weights
// of some networks. That is no quicker: see docs/log.md.)
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace bothends {

// How the steps of a panel stand: threes, then twos, then those that are widened one by one.
struct StepGroups {
  uint16_t threes, twos;
};

// Do the steps of inputs 0 to 7 of one output fit together?
bool pair_fits(const int8_t* weights);

class StepGrouping {
 public:
  static constexpr int kOutputs = 16;  // of a panel whose steps are grouped

  // `inputs` of an output, a multiple of four.
  explicit StepGrouping(int inputs) : loads_(inputs / 4), heaviest_(inputs / 4) {}

  // Puts the first input of every step into `order`, groups first. `panel` has the weights
  // (step, output, 4).
  StepGroups find(const int8_t* panel, uint16_t* order);

 private:
  // Sums of positive weights in the two lanes of every output, then those of negative ones.
  using Load = std::array<uint8_t, 4 * kOutputs>;

  void measure(const int8_t* panel);
  void sort_by_difficulty();
  int take_partner(const Load& room);

  std::vector<Load> loads_;        // of each step
  std::vector<uint8_t> heaviest_;  // (steps,): the largest of them, at most 128
  std::vector<int> left_;          // steps without a group, the most difficult first
};

}  // namespace bothends
