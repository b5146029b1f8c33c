#include "step_groups.h"

#include <algorithm>
#include <cstddef>

namespace bothends {

namespace {

constexpr int kMost = 32767 / 255;  // weights of one sign in a lane, times at most 255 each

}  // namespace

bool pair_fits(const int8_t* weights) {
  // A lane adds inputs 0, 1, 4 and 5, the other 2, 3, 6 and 7.
  int positive[2] = {}, negative[2] = {};
  for (int i = 0; i < 8; ++i) {
    positive[i / 2 % 2] += std::max<int>(weights[i], 0);
    negative[i / 2 % 2] += std::max<int>(-weights[i], 0);
  }
  return std::max({positive[0], positive[1], negative[0], negative[1]}) <= kMost;
}

void StepGrouping::measure(const int8_t* panel) {
  constexpr int kLanes = 2 * kOutputs;
  for (size_t step = 0; step < loads_.size(); ++step) {
    const int8_t* weights = panel + step * 2 * kLanes;
    Load& load = loads_[step];
    for (int i = 0; i < kLanes; ++i) {
      const int a = weights[2 * i], b = weights[2 * i + 1];
      load[i] = static_cast<uint8_t>(std::max(a, 0) + std::max(b, 0));
      load[kLanes + i] = static_cast<uint8_t>(std::max(-a, 0) + std::max(-b, 0));
    }
    uint8_t most = 0;
    for (const uint8_t lane : load) most = std::max(most, lane);
    heaviest_[step] = most;
  }
}

void StepGrouping::sort_by_difficulty() {
  int first[kMost + 2] = {};  // of each load, the heaviest first
  for (const uint8_t heaviest : heaviest_) ++first[kMost - heaviest + 1];
  for (int i = 1; i <= kMost + 1; ++i) first[i] += first[i - 1];
  left_.resize(heaviest_.size());
  for (size_t step = 0; step < heaviest_.size(); ++step) {
    left_[first[kMost - heaviest_[step]]++] = static_cast<int>(step);
  }
}

// The most difficult step that fits, no longer left; -1 if there is none.
int StepGrouping::take_partner(const Load& room) {
  for (auto at = left_.begin(); at != left_.end(); ++at) {
    const Load& load = loads_[*at];
    uint8_t over = 0;  // no branch in the loop: compilers make vectors of it
    for (size_t i = 0; i < load.size(); ++i) over |= std::max(load[i], room[i]) - room[i];
    if (over) continue;
    const int step = *at;
    left_.erase(at);
    return step;
  }
  return -1;
}

StepGroups StepGrouping::find(const int8_t* panel, uint16_t* order) {
  measure(panel);
  sort_by_difficulty();
  Load room;
  std::vector<int> groups[3];  // of three steps, of two, and of one
  while (!left_.empty()) {
    int group[3], size = 0;
    room.fill(kMost);
    for (int step; size < 3 && (step = take_partner(room)) >= 0;) {
      group[size++] = step;
      for (size_t i = 0; i < room.size(); ++i) room[i] -= loads_[step][i];
    }
    groups[3 - size].insert(groups[3 - size].end(), group, group + size);
  }
  for (const std::vector<int>& steps : groups) {
    for (const int step : steps) *order++ = static_cast<uint16_t>(4 * step);
  }
  return {static_cast<uint16_t>(groups[0].size() / 3), static_cast<uint16_t>(groups[1].size() / 2)};
}

}  // namespace bothends
