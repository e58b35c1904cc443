// How much a text of a grammar can still need, whatever token comes next.
//
// An item and one of its stacks cost the distance of its state and of every return state below.  A
// byte raises that by what its transition raises it, so the most that some bytes in a row can add
// is a longest path, found once per grammar: by states, round by round.  Returning costs nothing,
// since the return state was counted.
#include <algorithm>

#include "constrain/grammar_machine.hpp"

#include "constrain/poll.hpp"

namespace constrain {

namespace {
constexpr uint32_t kUnknown = 0xFFFFFFFFu;
constexpr uint32_t kFar = GrammarTables::kFar;
constexpr size_t kMaxWork = 20'000'000;   // states times bytes
constexpr int kMaxPasses = 64;
}  // namespace

void GrammarMachine::find_rises(uint32_t brackets, uint32_t bytes) {
  rises_known_ = true;
  rises_.clear();
  for (uint32_t q = 0; q < states_; ++q) {
    if (!tables_.marks(q).empty() || tables_.distance(q) >= kFar) return;
  }
  if (size_t{states_} * bytes > kMaxWork) return;
  std::vector<uint64_t> inside;   // of each embedded program
  for (uint32_t number = 0; number < foreign_.count(); ++number) {
    const Config start = foreign_.at(foreign_.start(number, 0));
    const uint32_t most = foreign_.use(number).most_needed(start, brackets, bytes);
    inside.push_back(most == kUnknown ? kFar : most);
  }
  std::vector<uint32_t> returns;
  for (uint32_t q = 0; q < states_; ++q) {
    for (const auto& call : tables_.calls(q)) returns.push_back(call.back);
    for (const auto& foreign : tables_.foreigns(q)) {
      if (inside[foreign.number] >= kFar) return;
      returns.push_back(foreign.back);
    }
  }
  std::sort(returns.begin(), returns.end());
  returns.erase(std::unique(returns.begin(), returns.end()), returns.end());
  const auto distance = [&](uint32_t q) { return int64_t{tables_.distance(q)}; };
  // What at most k further bytes add to the cost of an item in each state.
  std::vector<int64_t> before(states_, 0), now(states_);
  int64_t returned = 0;
  for (uint32_t k = 1; k <= bytes; ++k) {
    for (uint32_t q = 0; q < states_; ++q) {
      int64_t best = 0;
      for (const auto& range : tables_.ranges(q)) {
        best = std::max(best, distance(range.target) - distance(q) + before[range.target]);
      }
      for (const auto& foreign : tables_.foreigns(q)) {
        const int64_t back = distance(foreign.back) - distance(q);
        best = std::max({best, back + int64_t(inside[foreign.number]),
                         back + before[foreign.back]});
      }
      now[q] = best;
    }
    // Calls and returns read nothing.
    bool changed = true;
    for (int pass = 0; changed; ++pass) {
      poll();
      if (pass == kMaxPasses) return;
      changed = false;
      for (const uint32_t r : returns) returned = std::max(returned, now[r]);
      for (uint32_t q = states_; q-- > 0;) {
        int64_t best = now[q];
        if (tables_.is_final(q)) best = std::max(best, returned - distance(q));
        for (const auto& call : tables_.calls(q)) {
          best = std::max(best, distance(call.callee) + distance(call.back) - distance(q) +
                                    now[call.callee]);
        }
        changed = changed || best != now[q];
        now[q] = best;
      }
    }
    const bool same = now == before;
    before = now;
    if (same) break;
  }
  returned_rise_ = returned;
  rises_ = std::move(before);
}

uint64_t GrammarMachine::most_below(StackId wanted) {
  std::vector<StackId> open{wanted};
  while (!open.empty()) {
    const StackId id = open.back();
    if (most_below_.contains(id)) {
      open.pop_back();
      continue;
    }
    uint64_t most = 0;
    bool ready = true;
    for (const auto& entry : stacks_.entries(id)) {
      if (entry.back == GrammarStacks::kBottom) continue;
      const auto below = most_below_.find(entry.below);
      if (below == most_below_.end()) {
        open.push_back(entry.below);
        ready = false;
      } else {
        most = std::max(most, tables_.distance(entry.back) + below->second);
      }
    }
    if (!ready) continue;
    most_below_.emplace(id, most);
    open.pop_back();
  }
  return most_below_.at(wanted);
}

uint32_t GrammarMachine::most_needed(const Config& config, uint32_t brackets, uint32_t bytes) {
  measure();
  if (!rises_known_) find_rises(brackets, bytes);
  if (rises_.empty()) return kUnknown;
  uint64_t most = 0;
  const auto place = [&](const Config& at, uint32_t number, StackId stacks) {
    const uint64_t below = most_below(stacks);
    const uint32_t inside = foreign_.use(number).most_needed(at, brackets, bytes);
    if (inside == kUnknown) return false;
    most = std::max({most, below + inside, below + uint64_t(returned_rise_)});
    return true;
  };
  if (is_place(config)) {
    return place(config, number_of(config), config.w[kStacks])
               ? uint32_t(std::min<uint64_t>(most, kUnknown)) : kUnknown;
  }
  const std::vector<Item> all(items(config).begin(), items(config).end());
  for (const Item& item : all) {
    if (place_key(item.key)) {
      const Config at = place_at(item.key);
      if (!place(at, at.w[GrammarForeign::kNumber], item.stacks)) return kUnknown;
      continue;
    }
    const uint32_t q = state_of(item.key);
    most = std::max(most, tables_.distance(q) + uint64_t(rises_[q]) + most_below(item.stacks));
  }
  return uint32_t(std::min<uint64_t>(most, kUnknown));
}

}  // namespace constrain
